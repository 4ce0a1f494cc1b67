// Marks recorded deliveries whose sender did not get the answer that their row names: the repeat that follows has a visible cause
// then. Marks are kept in memory for some seconds, and a crash may lose them.

import type { Logger } from 'pino';
import { textArray, uuidArray } from '../recording/arrays.ts';
import { createCounter } from './counter.ts';
import type { DatabaseConnection, Statement } from '../sessions/database.ts';
import type { Unanswered } from '../schema/tables.ts';

export type UnansweredLog = {
  /** Of a delivery that is recorded, or perhaps will be. Keeps it in memory until the next flush. */
  readonly notice: (deliveryId: string, why: Unanswered) => void;
  /** Writes the last marks and stops. */
  readonly close: () => Promise<void>;
};

/**
 * By the primary key, in the partitions of the last day. Rows that another transaction has locked are left alone: it has locked
 * them in an order of its own, and the mark is not worth a deadlock. A delivery that was not recorded after all has no row.
 */
const MARK: Statement = {
  name: 'mark-unanswered',
  text: `
with free as materialized (
  select d.id, d.received_at, m.why
  from unnest($1::uuid[], $2::text[]) as m (id, why)
  join deliveries d on d.id = m.id and d.received_at > now() - interval '1 day'
  for no key update of d skip locked
)
update deliveries d set unanswered = free.why from free where d.id = free.id and d.received_at = free.received_at`,
};

/** Some 200 bytes each. More come in ten seconds only while nearly everything fails, and then a few of them show it. */
const MARKS_MAX = 10_000;

export function createUnansweredLog(options: {
  connection: Pick<DatabaseConnection, 'execute'>;
  /** See `createCounter`. */
  firstFlushMs?: number;
  log: Logger;
}): UnansweredLog {
  const { connection, log } = options;
  const counter = createCounter<{ id: string; why: Unanswered }>({
    name: 'unanswered deliveries',
    merge: () => {},
    write: async (rows) => {
      await connection.execute(MARK, [
        uuidArray(rows.map(({ id }) => id)),
        textArray(rows.map(({ why }) => why)),
      ]);
    },
    rowsPerGroup: MARKS_MAX,
    groupOf: () => '',
    firstFlushMs: options.firstFlushMs,
    log,
  });
  return { notice: (id, why) => counter.add(id, { id, why }), close: counter.close };
}
