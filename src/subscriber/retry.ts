// Several attempts at one thing, with a growing wait between them.

import { setTimeout as sleep } from 'node:timers/promises';
import { type Backoff, backoffMs } from './backoff.ts';
import { RejectError, UnavailableError } from './errors.ts';
import type { Rest } from './lanes.ts';

export type Attempted<Result> =
  | { readonly outcome: 'done'; readonly result: Result; readonly attempt: number }
  | {
      readonly outcome: 'failed';
      readonly reason: 'attempts' | 'rejected';
      /** How many there were. */
      readonly attempts: number;
      readonly error: unknown;
    }
  /** Another attempt made no sense any more. */
  | { readonly outcome: 'abandoned' };

export type Failed = {
  readonly attempt: number;
  /** False if it was no fault of what was attempted: there may be any number of these. */
  readonly counts: boolean;
  readonly retryInMs: number;
  readonly error: unknown;
};

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
  readonly onRetry: (failed: Failed) => void;
}): Promise<Attempted<Result>> {
  let attempt = 1;
  for (let tries = 1; ; tries += 1) {
    try {
      return { outcome: 'done', result: await options.run(attempt), attempt };
    } catch (error) {
      if (!options.isWanted()) return { outcome: 'abandoned' };
      if (error instanceof RejectError)
        return { outcome: 'failed', reason: 'rejected', attempts: attempt, error };
      const counts = !(error instanceof UnavailableError);
      if (counts && attempt >= options.attempts)
        return { outcome: 'failed', reason: 'attempts', attempts: attempt, error };
      const retryInMs = backoffMs(options.backoff, tries);
      options.onRetry({ attempt, counts, retryInMs, error });
      if (counts) attempt += 1;
      await options.rest(sleep(retryInMs, undefined, { signal: options.hurry }).catch(() => {}));
      if (!options.isWanted()) return { outcome: 'abandoned' };
    }
  }
}
