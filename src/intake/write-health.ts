// Whether the ledger takes writes, asked where they are made: by the intake's own connections, in sessions like those of
// deliveries, on the tables that they are written to. That some other session can read says nothing of this: the database may be
// read-only or a standby, a role may have no connection left, a commit may wait for ever.

import { setTimeout as sleep } from 'node:timers/promises';
import { describeError } from '../base/errors.ts';
import { type DatabaseConnection, failureOf, faultOf, type Statement } from '../ledger/index.ts';
import type { Logger } from '../base/log/log.ts';

export type WriteHealth = {
  /** At most once in ASK_MS for all who ask, and not at all while deliveries are being recorded. */
  readonly isUp: () => Promise<boolean>;
  /** What became of a write: the error that it failed with, or nothing. */
  readonly note: (error?: unknown) => void;
};

/**
 * Inserts nothing, and fails where a delivery would: in a read-only transaction, on a standby, without a right, behind a lock.
 * The message in the WAL has no reader. Its commit waits as a delivery's does, for the disk and for a synchronous standby.
 */
const PROBE: Statement = {
  name: 'write-probe',
  text: `
with job as (insert into jobs (source) select source from jobs where false),
event as (insert into events (source) select source from events where false),
batch as (insert into outbox_batches (first) select first from outbox_batches where false),
delivery as (insert into deliveries (id) select id from deliveries where false)
select pg_logical_emit_message(true, 'tallyhook', '')`,
};

/** Probes of balancers come from several places: not each one may cost a commit. */
const ASK_MS = 1_000;
/**
 * If the last writes failed for what the probe does not meet (a full disk, a time limit), it is down for so long after the last
 * one: long enough for a balancer to see it. Then deliveries may try again, since otherwise none would come that could show that
 * it is over.
 */
const FAILING_MS = 5_000;
/** A probe that has no answer yet tells nothing: it waits for a lock, perhaps, as deliveries may. Its time limit ends it. */
const PATIENCE_MS = 250;
/** One alone may be a lock's or a time limit's victim. */
const FAILURES_MIN = 2;

export function createWriteHealth(options: {
  connection: Pick<DatabaseConnection, 'execute'>;
  /** Monotonic milliseconds. */
  now: () => number;
  log: Logger;
}): WriteHealth {
  const { connection, now, log } = options;
  let committedAtMs = Number.NEGATIVE_INFINITY;
  let failedAtMs = Number.NEGATIVE_INFINITY;
  let failures = 0; // since the last commit
  let asking: Promise<boolean> | undefined;
  let answeredAtMs = Number.NEGATIVE_INFINITY;
  let isUp = true; // as it was told last; nobody is told ready before the start has written to Postgres

  function tell(error: unknown): boolean {
    const was = isUp;
    isUp = error === undefined;
    if (was && !isUp)
      log.error(
        { err: describeError(error) },
        `not ready, since the ledger takes no writes: ${failureOf(error).because}`,
      );
    if (!was && isUp) log.info('the ledger takes writes again');
    return isUp;
  }

  /** One at a time: it takes a connection from deliveries. */
  async function probe(): Promise<boolean> {
    if (asking === undefined && now() - answeredAtMs < ASK_MS) return isUp;
    asking ??= connection
      .execute(PROBE, [])
      .then(
        () => tell(undefined),
        (error: unknown) => tell(error),
      )
      .finally(() => {
        asking = undefined;
        answeredAtMs = now();
      });
    return asking;
  }

  return {
    isUp: async () => {
      if (now() - committedAtMs < ASK_MS) return tell(undefined);
      if (failures >= FAILURES_MIN && now() - failedAtMs < FAILING_MS) return false;
      const known = sleep(PATIENCE_MS, undefined, { ref: false }).then(() => isUp);
      return Promise.race([probe(), known]);
    },
    note: (error) => {
      if (error === undefined) {
        committedAtMs = now();
        failures = 0;
      } else if (!['delivery', 'added'].includes(faultOf(error) ?? '')) {
        // What may be one delivery's own tells nothing of others.
        failedAtMs = now();
        failures += 1;
      }
    },
  };
}
