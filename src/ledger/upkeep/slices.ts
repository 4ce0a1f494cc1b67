// Work on many rows in slices, each a short transaction of its own: nobody waits long for one, and a failed slice undoes no
// earlier one.

import type { Transaction } from 'kysely';
import type { DatabaseConnection } from '../sessions/database.ts';
import type { Database } from '../schema/tables.ts';

/** With slices of 2,000 rows, up to 200,000 a run. The next run does the rest. */
const SLICES_PER_RUN = 100;

/**
 * Runs `slice` until it returns 0, for nothing left, or the run's limit is reached. Starts no further slice once `signal` is
 * aborted.
 * @returns true if nothing is left
 */
export async function inSlices(
  { db }: DatabaseConnection,
  slice: (trx: Transaction<Database>) => Promise<number>,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  for (let slices = 0; slices < SLICES_PER_RUN && !signal?.aborted; slices++) {
    if ((await db.transaction().execute(slice)) === 0) return true;
  }
  return false;
}
