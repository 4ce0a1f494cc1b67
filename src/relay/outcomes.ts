// What becomes of an entry: after an attempt to publish it, or because it has to wait behind another one of its job.

import type { Logger } from 'pino';
import { eventId } from '../event/index.ts';
import { jobKey } from '../ledger/index.ts';
import { causeOf, retryDelayMs } from './backoff.ts';
import type { CopyWrites } from './copy-writes.ts';
import { type Attempt, type Entry, isDelay, type Settlement } from './entry.ts';
import { nextStep } from './next-step.ts';
import type { Publication } from './publication.ts';
import type { Results } from './results.ts';
import type { Lane, Window } from './window.ts';

/** `alone`: no other message was in flight. `isStale`: what waited in memory was forgotten while it was on its way. */
type How = { readonly alone: boolean; readonly isStale: boolean };

export type Outcomes = {
  /** What came of an attempt with the first entry of the lane. */
  readonly add: (lane: Lane, publication: Publication, how: How) => void;
  /** An event of its job is held, so this one is, too. It is not published. */
  readonly hold: (entry: Entry) => void;
};

export function createOutcomes(options: {
  window: Window;
  results: Pick<Results, 'add'>;
  copies: Pick<CopyWrites, 'add'>;
  maxAttempts: number;
  /** 0 ≤ random < 1, for jitter. */
  random: () => number;
  log: Logger;
  observe: (entry: Entry, publication: Publication) => void;
  /** The attempt does not count. */
  publishAgain: (lane: Lane, publication: Publication) => void;
  /** Lets what waits in memory be read from the outbox again. */
  forget: () => void;
}): Outcomes {
  const { window, results, copies, maxAttempts, random, log, observe, publishAgain, forget } = options;

  let attempts = 0;

  function add(lane: Lane, publication: Publication, { alone, isStale }: How): void {
    const entry = lane.entries[0] as Entry;
    observe(entry, publication);
    const next = nextStep(entry, publication, { alone, maxAttempts });
    const retryInMs = next === 'retry' ? retryDelayMs(entry.attempts + 1, random(), causeOf(publication)) : 0;
    attempts += 1;
    const result: Attempt = { entry, number: attempts, publication, next, retryInMs };
    if (next === 'keep') keep(lane, result, isStale);
    else if (entry.replay === undefined) apply(lane, result);
    else copies.add(lane, result);
    if (next === 'park') {
      log.error({ event: eventId(entry.source, entry), attempts: entry.attempts + 1 }, 'event parked');
    }
  }

  /**
   * If an operator has decided about something while it was on its way, it is read from the outbox again, and all that waits there
   * with it (R26). Otherwise it stays: the one message that makes the broker close the channel is found among those that were on
   * their way with it.
   */
  function keep(lane: Lane, result: Attempt, isStale: boolean): void {
    if (result.entry.replay === undefined) results.add(result);
    publishAgain(lane, result.publication);
    if (isStale) forget();
  }

  /** Published, or no queue received it: the job's next event may follow. Otherwise all of the job's events wait from now on. */
  function apply(lane: Lane, result: Attempt): void {
    window.advance(lane);
    if (isDelay(result)) delay(result);
    else results.add(result);
  }

  /** Until this is written, all later events of the job are held, too (R32). */
  function delay(settlement: Settlement): void {
    results.add(settlement);
    const { source, jobId } = settlement.entry;
    for (const entry of window.close(jobKey(source, jobId))) hold(entry);
  }

  function hold(entry: Entry): void {
    if (entry.batch === undefined) return; // it has a row of its own, and is loaded when it is due
    window.keep(entry);
    delay({ entry, next: 'hold', retryInMs: 0 });
  }

  return { add, hold };
}
