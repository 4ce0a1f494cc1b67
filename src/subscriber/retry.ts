// Several attempts at one thing, with a growing wait between them.

import { setTimeout as sleep } from 'node:timers/promises';
import { type Backoff, backoffMs } from './backoff.ts';
import { RejectError } from './errors.ts';
import type { Rest } from './lanes.ts';

export type Attempted<Result> =
  | { readonly outcome: 'done'; readonly result: Result; readonly attempt: number }
  | { readonly outcome: 'failed'; readonly reason: 'attempts' | 'rejected'; readonly error: unknown }
  /** Another attempt made no sense any more. */
  | { readonly outcome: 'abandoned' };

/**
 * Never rejects.
 * @param isWanted asked after each failure and each wait: false ends it as `abandoned`
 * @param hurry aborts a wait
 */
export async function withRetries<Result>(options: {
  readonly attempts: number;
  readonly backoff: Backoff;
  readonly isWanted: () => boolean;
  readonly hurry: AbortSignal;
  readonly rest: Rest;
  readonly run: (attempt: number) => Promise<Result>;
  readonly onRetry: (failed: { attempt: number; retryInMs: number; error: unknown }) => void;
}): Promise<Attempted<Result>> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return { outcome: 'done', result: await options.run(attempt), attempt };
    } catch (error) {
      if (!options.isWanted()) return { outcome: 'abandoned' };
      if (error instanceof RejectError) return { outcome: 'failed', reason: 'rejected', error };
      if (attempt >= options.attempts) return { outcome: 'failed', reason: 'attempts', error };
      const retryInMs = backoffMs(options.backoff, attempt);
      options.onRetry({ attempt, retryInMs, error });
      await options.rest(sleep(retryInMs, undefined, { signal: options.hurry }).catch(() => {}));
      if (!options.isWanted()) return { outcome: 'abandoned' };
    }
  }
}
