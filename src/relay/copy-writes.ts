// The results of replays' copies. They are written beside the rounds, since that write can wait for a lock that an operator has
// on a replay.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { describeError } from '../base/errors.ts';
import type { Attempt } from './entry.ts';
import type { Outbox } from './outbox.ts';
import type { Lane, Window } from './window.ts';

export type CopyWrites = {
  /** Of the first entry of the lane. */
  readonly add: (lane: Lane, settlement: Attempt) => void;
  /** Starts to write what there is, and does not wait for it. Returns how many. */
  readonly write: () => number;
  readonly isWriting: () => boolean;
  /** Whether `write` would start something. */
  readonly isDue: () => boolean;
  /** Whether there are results that are not committed yet. */
  readonly isUnwritten: () => boolean;
  /** A copy of this replay was returned; the write that pauses it is not committed yet. */
  readonly isStopped: (replayId: string) => boolean;
};

const ERROR_PAUSE_MS = 1_000;

export function createCopyWrites(options: {
  outbox: Pick<Outbox, 'settleCopies'>;
  window: Window;
  log: Logger;
  onWritten: () => void;
}): CopyWrites {
  const { outbox, window, log, onWritten } = options;
  const stopped = new Set<string>(); // ids of replays
  let unwritten: Attempt[] = [];
  let writing: Promise<void> | undefined;

  async function write(batch: Attempt[]): Promise<void> {
    try {
      await outbox.settleCopies(batch);
    } catch (error) {
      unwritten = [...batch, ...unwritten];
      log.warn({ err: describeError(error) }, "the results of a replay's copies could not be written yet");
      await sleep(ERROR_PAUSE_MS, undefined, { ref: false });
      return;
    }
    for (const { entry, next } of batch) {
      if (next === 'delete' || next === 'return') window.forget(entry);
      else window.forgetFailedCopy(entry);
      if (next === 'return') stopped.delete(entry.replay?.id ?? '');
    }
  }

  return {
    add: (lane, settlement) => {
      const { entry, next } = settlement;
      const replayId = entry.replay?.id ?? '';
      unwritten.push(settlement);
      if (next === 'retry') {
        window.deferReplay(lane);
        return;
      }
      window.advance(lane);
      if (next !== 'return') return;
      // Its other copies would be returned, too. The database pauses the replay when this copy's result is written.
      stopped.add(replayId);
      window.forgetReplay(replayId);
    },
    write: () => {
      if (writing !== undefined || unwritten.length === 0) return 0;
      const batch = unwritten;
      unwritten = [];
      writing = write(batch).finally(() => {
        writing = undefined;
        onWritten();
      });
      return batch.length;
    },
    isWriting: () => writing !== undefined,
    isDue: () => writing === undefined && unwritten.length > 0,
    isUnwritten: () => writing !== undefined || unwritten.length > 0,
    isStopped: (replayId) => stopped.has(replayId),
  };
}
