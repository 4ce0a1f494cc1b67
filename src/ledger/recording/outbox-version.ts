// How the leader of the relay learns that what waits in its memory is not as it was any more.

import { sql, type Transaction } from 'kysely';
import type { Database } from '../schema/tables.ts';

/**
 * The leader reads the version within a second, and then forgets what waits in its memory (R21). To be called in the transaction of
 * the decision, at its end: the row of the version is locked after all others (R46).
 */
export async function tellLeader(trx: Transaction<Database>): Promise<void> {
  await sql`update outbox_version set version = version + 1`.execute(trx);
}
