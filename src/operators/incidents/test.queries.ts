// How long the transaction of a test of the channels may wait for their answers.

import { type Kysely, sql } from 'kysely';
import type { Database } from '../../ledger/index.ts';

/** Twice what a request to a channel may take; all are sent at once. The transaction has nothing locked but its idempotency key. */
const IDLE_IN_TRANSACTION_MS = 20_000;

export async function awaitChannels(db: Kysely<Database>): Promise<void> {
  await sql`select set_config('idle_in_transaction_session_timeout', ${`${IDLE_IN_TRANSACTION_MS}ms`}, true)`.execute(
    db,
  );
}
