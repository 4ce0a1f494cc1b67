// When and how the webhooks of an account are sent: what it has set itself, and the sandbox's own settings for the rest.

import type { Account } from '../store/accounts.ts';
import type { SendingPlan } from '../webhooks/sender.ts';

export function sendingPlan(account: Account, { retry, timeoutMs }: SendingPlan): SendingPlan {
  return {
    retry: {
      ...retry,
      maxAttempts: account.maxAttempts,
      firstDelayMs: account.retryFirstMs ?? retry.firstDelayMs,
      factor: account.retryFactor ?? retry.factor,
      maxDelayMs: account.retryMaxMs ?? retry.maxDelayMs,
    },
    timeoutMs: account.timeoutMs ?? timeoutMs,
  };
}
