// Idempotency keys: a request that is repeated under its key acts once and gets the first answer again. Key, request hash
// and answer are written in the action's own transaction, so a request that failed leaves no key and can be repeated.

import { sql, type Transaction } from 'kysely';
import type { Database } from '../../../ledger/index.ts';

/** The ledger's upkeep deletes older rows from time to time. */
const KEPT_HOURS = 24;

export type Claim =
  /** 'reused': the key belongs to another request. */
  | { readonly outcome: 'claimed' | 'reused' }
  /** `answer` is the JSON of the body. */
  | { readonly outcome: 'answered'; readonly status: number; readonly answer: string };

type Key = { readonly tokenId: string; readonly key: string; readonly requestHash: Buffer };

/**
 * Waits for a transaction that has claimed the same key and is not committed yet, by the primary key's index.
 * @throws 55P03 if that takes longer than lock_timeout
 */
export async function claimKey(
  trx: Transaction<Database>,
  { tokenId, key, requestHash }: Key,
): Promise<Claim> {
  const claimed = await trx
    .insertInto('idempotency_keys')
    .values({ token_id: tokenId, key, request_hash: requestHash, created_at: sql<Date>`now()` })
    .onConflict((conflict) =>
      conflict
        .columns(['token_id', 'key'])
        .doUpdateSet({
          request_hash: requestHash,
          http_status: null,
          answer: null,
          created_at: sql<Date>`now()`,
        })
        .where('idempotency_keys.created_at', '<', sql<Date>`now() - make_interval(hours => ${KEPT_HOURS})`),
    )
    .returning('key')
    .executeTakeFirst();
  if (claimed !== undefined) return { outcome: 'claimed' };
  const found = await trx
    .selectFrom('idempotency_keys')
    .select(['request_hash', 'http_status', 'answer'])
    .where('token_id', '=', tokenId)
    .where('key', '=', key)
    .executeTakeFirstOrThrow();
  if (!found.request_hash.equals(requestHash)) return { outcome: 'reused' };
  return { outcome: 'answered', status: found.http_status ?? 200, answer: found.answer ?? 'null' };
}

export async function keepAnswer(
  trx: Transaction<Database>,
  { tokenId, key }: Pick<Key, 'tokenId' | 'key'>,
  { status, answer }: { status: number; answer: string },
): Promise<void> {
  await trx
    .updateTable('idempotency_keys')
    .set({ http_status: status, answer })
    .where('token_id', '=', tokenId)
    .where('key', '=', key)
    .execute();
}
