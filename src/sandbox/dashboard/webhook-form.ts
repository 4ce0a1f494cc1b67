// The form with an account's webhook settings. Waits and times are in seconds there, and in milliseconds in the account.

import { UsageError } from '../../base/errors.ts';
import { type Content, type Html, html } from '../../web/index.ts';
import type { Account, AccountChanges } from '../accounts/accounts.ts';
import { ACCOUNT_RANGES, checkWebhookUrl } from '../accounts/checks.ts';
import { sendingPlan } from '../accounts/sending-plan.ts';
import { EVENT_KINDS, type EventKind } from '../webhooks/notifications.ts';
import { longestDelaysMs } from '../webhooks/retry.ts';
import { foreign, form, number, seconds } from './shown.ts';
import type { Site } from './site.ts';

const FIELDS = ['url', 'attempts', 'first', 'factor', 'longest', 'timeout'] as const;

export type Values = Readonly<Record<(typeof FIELDS)[number], string>> & {
  readonly events: readonly EventKind[];
};

export function toValues(account: Account): Values {
  return {
    url: account.webhookUrl ?? '',
    events: account.eventKinds,
    attempts: String(account.maxAttempts),
    first: inSeconds(account.retryFirstMs),
    factor: account.retryFactor === null ? '' : String(account.retryFactor),
    longest: inSeconds(account.retryMaxMs),
    timeout: inSeconds(account.timeoutMs),
  };
}

function inSeconds(ms: number | null): string {
  return ms === null ? '' : String(ms / 1_000);
}

export function valuesIn(given: URLSearchParams): Values {
  const texts = FIELDS.map((name) => [name, (given.get(name) ?? '').trim()]);
  const events = EVENT_KINDS.filter((kind) => given.getAll('events').includes(kind));
  return { ...(Object.fromEntries(texts) as Omit<Values, 'events'>), events };
}

/** @throws UsageError */
export function readSettings({
  url,
  events,
  attempts,
  first,
  factor,
  longest,
  timeout,
}: Values): AccountChanges {
  const { maxAttempts, retryFirstMs, retryFactor, retryMaxMs, timeoutMs } = ACCOUNT_RANGES;
  return {
    webhookUrl: url === '' ? null : checkWebhookUrl('The default address', url),
    eventKinds: events,
    maxAttempts: inRange('The number of attempts', attempts, maxAttempts, /^\d{1,9}$/),
    retryFirstMs: orDefault(first, (text) => inMs('The first wait', text, retryFirstMs)),
    retryFactor: orDefault(factor, (text) => inRange('The factor', text, retryFactor, DECIMAL)),
    retryMaxMs: orDefault(longest, (text) => inMs('The longest wait', text, retryMaxMs)),
    timeoutMs: orDefault(timeout, (text) => inMs('The time-out', text, timeoutMs)),
  };
}

type Range = { readonly min: number; readonly max: number };

/** To the millisecond. */
const DECIMAL = /^\d{1,9}(?:\.\d{1,3})?$/;

function orDefault(text: string, read: (text: string) => number): number | null {
  return text === '' ? null : read(text);
}

function inMs(what: string, text: string, { min, max }: Range): number {
  return Math.round(inRange(what, text, { min: min / 1_000, max: max / 1_000 }, DECIMAL, ' s') * 1_000);
}

function inRange(what: string, text: string, { min, max }: Range, shape: RegExp, unit = ''): number {
  const value = Number(text);
  if (shape.test(text) && value >= min && value <= max) return value;
  throw new UsageError(`${what} is a number from ${number(min)} to ${number(max)}${unit}`);
}

export function settingsForm(values: Values, account: Account, { webhooks, addresses }: Site): Html {
  const { retry, timeoutMs } = webhooks;
  return form(
    '/webhooks',
    html`<label>Default address, for jobs without a webhook_url (empty: none)
<input name="url" type="url" value="${values.url}" placeholder="https://"></label>
${addressWarning(account, addresses)}
<fieldset class="choices"><legend>Events that are sent</legend>
${EVENT_KINDS.map((kind) => html`<label class="tick"><input type="checkbox" name="events" value="${kind}"${values.events.includes(kind) && html` checked`}> ${kind}</label>`)}
</fieldset>
<fieldset><legend>Retries</legend>
<p class="hint">A webhook without a 2xx answer in time is sent again. Each wait is longer than the one before. An empty field is as
the sandbox has it.</p>
<div class="numbers">
${field('Attempts', 'attempts', values.attempts, '', 'required')}
${field('First wait, s', 'first', values.first, String(retry.firstDelayMs / 1_000))}
${field('Each further wait, times', 'factor', values.factor, String(retry.factor))}
${field('Longest wait, s', 'longest', values.longest, String(retry.maxDelayMs / 1_000))}
${field('Time-out, s', 'timeout', values.timeout, String(timeoutMs / 1_000))}
</div>
<p class="hint">${schedule(account, webhooks)}</p></fieldset>
<button class="main">Save</button>`,
  );
}

function field(label: string, name: string, value: string, placeholder: string, required?: 'required'): Html {
  return html`<label>${label}
<input name="${name}" inputmode="decimal" value="${value}" placeholder="${placeholder}" autocomplete="off"${required && html` required`}></label>`;
}

/** As it is now, not as the form would make it. */
function schedule(account: Account, webhooks: Site['webhooks']): string {
  const plan = sendingPlan(account, webhooks);
  const delays = longestDelaysMs(plan.retry);
  const timeout = `A receiver has ${seconds(plan.timeoutMs)} to answer.`;
  if (delays.length === 0) return `Saved: one attempt, and no retry. ${timeout}`;
  return `Saved: ${number(delays.length + 1)} attempts, with waits of at most ${delays.map(seconds).join(', ')}. ${timeout}`;
}

function addressWarning({ webhookUrl }: Account, addresses: Site['addresses']): Content {
  const fault = webhookUrl === null ? undefined : addresses.fault(webhookUrl);
  if (fault === undefined) return undefined;
  return html`<div class="notice warn"><p>This sandbox does not send to the saved address: it ${foreign(fault)}. See
<code>--allow-local</code>.</p></div>`;
}
