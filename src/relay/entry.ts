// An entry of the outbox in the relay's memory, and what an attempt to publish it changes.

import type { Batch } from './batch.ts';
import type { EntryEvent } from './cloud-event.ts';
import type { NextStep } from './next-step.ts';
import type { Publication } from './publication.ts';

export type Entry = EntryEvent & {
  /** Its key and place in the outbox, decimal digits. For a live entry it is its event's sequence. */
  readonly position: string;
  readonly attempts: number;
  /** The row that it shares with the other events of a write. Undefined for a held event and for a replay's copy. */
  readonly batch?: Batch;
  /** Why there is no message to publish; then it fails. */
  readonly unreadable?: string;
};

/** What one publish attempt changes in the outbox. `retryInMs` is 0 unless `next` is `retry`. */
export type Attempt = {
  readonly entry: Entry;
  /** Of this attempt among those of this relay: it tells the record of another attempt from a repeat. */
  readonly number: number;
  readonly next: NextStep;
  readonly publication: Publication;
  readonly retryInMs: number;
};

/** An event that was not published: it is held behind an earlier one of its job. */
type Hold = {
  readonly entry: Entry;
  readonly next: 'hold';
  readonly number?: undefined;
  readonly publication?: undefined;
  readonly retryInMs: 0;
};

export type Settlement = Attempt | Hold;

/** Whether the later events of its job wait from now on. */
export const isDelay = ({ next }: Settlement): boolean =>
  next === 'retry' || next === 'park' || next === 'hold';

/** Whether `a` stands before `b`: both are decimal digits without leading zeros. */
export function isBefore(a: string, b: string): boolean {
  return a.length === b.length ? a < b : a.length < b.length;
}
