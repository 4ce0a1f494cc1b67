// Finds out that the database has lost what it had committed. Each replica remembers the last delivery that it has acknowledged,
// and looks for it when the database was started anew or is another one. That it is gone is the alarm: nothing else tells, and if
// all replicas were stopped meanwhile, nobody knows.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { describeError } from '../../base/errors.ts';
import type { DatabaseConnection, Statement } from '../sessions/database.ts';

/** Of a loss. All times by this replica's clock, but for the last one. */
export type Loss = {
  readonly deliveryId: string;
  /** When it was acknowledged. */
  readonly acknowledgedAt: Date;
  /** When the newest event that is left of that time was recorded: what came between the two is gone. Null if there is none. */
  readonly keptUntil: Date | null;
};

export type LossWatch = {
  /** To be called for each write after its commit, with one of its deliveries. */
  readonly acknowledged: (deliveryId: string) => void;
  /** Looks for what was acknowledged last, until the database answers. Never rejects. */
  readonly look: () => Promise<void>;
  readonly losses: () => number;
  readonly close: () => void;
};

/**
 * By the primary keys: of each day's deliveries, and of events, whose newest ones have the highest numbers.
 */
const LOOK: Statement = {
  name: 'loss-look',
  text: `
select exists (select from deliveries where id = $1::uuid) as "isThere", (
  select recorded_at from events where recorded_at <= $2::timestamptz order by sequence desc limit 1
) as "keptUntil"`,
};

const RETRY_MS = 1_000;
const DAY_MS = 86_400_000;

export function createLossWatch(options: {
  connection: Pick<DatabaseConnection, 'execute'>;
  /** Older deliveries are gone in any case. */
  retentionDays: number;
  /** Writes down that there was a loss, where operators look. */
  onLoss: (loss: Loss) => Promise<void>;
  log: Logger;
}): LossWatch {
  const { connection, retentionDays, onLoss, log } = options;
  const ended = new AbortController();
  let last: { readonly deliveryId: string; readonly acknowledgedMs: number } | undefined;
  let losses = 0;

  /** As often as it takes: the database may go away again. */
  async function persistently<T>(ask: () => Promise<T>): Promise<T | undefined> {
    while (!ended.signal.aborted) {
      try {
        return await ask();
      } catch (error) {
        log.warn({ err: describeError(error) }, 'whether the database has lost deliveries is not known yet');
        await sleep(RETRY_MS, undefined, { ref: false, signal: ended.signal }).catch(() => {});
      }
    }
    return undefined;
  }

  async function look(): Promise<void> {
    if (last === undefined) return;
    const { deliveryId, acknowledgedMs } = last;
    // Partitions of whole days are dropped.
    if (Date.now() - acknowledgedMs > (retentionDays - 1) * DAY_MS) return;
    const acknowledgedAt = new Date(acknowledgedMs);
    const rows = await persistently(() =>
      connection.execute<{ isThere: boolean; keptUntil: Date | null }>(LOOK, [deliveryId, acknowledgedAt]),
    );
    const [found] = rows ?? [];
    if (found === undefined || found.isThere) return;
    if (last?.deliveryId === deliveryId) last = undefined; // it is told once
    losses += 1;
    const loss = { deliveryId, acknowledgedAt, keptUntil: found.keptUntil };
    log.error(
      loss,
      'the database went back in time: deliveries that were acknowledged are gone (docs/backup.md)',
    );
    await persistently(() => onLoss(loss));
  }

  return {
    acknowledged: (deliveryId) => {
      last = { deliveryId, acknowledgedMs: Date.now() };
    },
    look,
    losses: () => losses,
    close: () => ended.abort(),
  };
}
