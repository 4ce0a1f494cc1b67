// Runs an action in one transaction, together with its lines in the operator log and its idempotency key. The transaction
// is committed before the answer is sent. An action that fails leaves nothing behind.

import { createHash } from 'node:crypto';
import type { Transaction } from 'kysely';
import { parseJson } from '../../../base/json/json.ts';
import { type Database, type DatabaseConnection, isLockTimeout, isRetryable } from '../../../ledger/index.ts';
import { claimKey, keepAnswer } from '../access/idempotency.queries.ts';
import { appendAllToLog } from '../access/operator-log.queries.ts';
import { toJson } from './answers.ts';
import type { Input } from './input.ts';
import { type Action, ApiError, type CallContext } from './operation.ts';

export type Acted = { readonly status: number; readonly json: string; readonly isReplayed: boolean };

/** A transaction that lost a deadlock has changed nothing, so it can run again. Deadlocks are rare. */
const ATTEMPTS = 3;

type Call = {
  readonly action: Action;
  readonly input: Input;
  readonly context: Omit<CallContext, 'record'>;
  readonly key: string | undefined;
};

/** Runs the action, or returns the answer that the same request got before. @throws ApiError, and what the action throws */
export async function act({ db }: Pick<DatabaseConnection, 'db'>, call: Call): Promise<Acted> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await db
        .transaction()
        .execute((trx) => (call.key === undefined ? run(trx, call) : runOnce(trx, call, call.key)));
    } catch (error) {
      if (!isRetryable(error) || attempt === ATTEMPTS) throw error;
    }
  }
}

async function runOnce(trx: Transaction<Database>, call: Call, key: string): Promise<Acted> {
  const { tokenId } = call.context.caller;
  const claim = await claimKey(trx, { tokenId, key, requestHash: hashOf(call) }).catch((error: unknown) => {
    if (!isLockTimeout(error)) throw error;
    throw new ApiError(409, 'in_progress', 'a request with this Idempotency-Key is still under way');
  });
  if (claim.outcome === 'reused') {
    throw new ApiError(
      422,
      'idempotency_key_reused',
      'this Idempotency-Key was used for another request: use a new one',
    );
  }
  if (claim.outcome === 'answered') return { status: claim.status, json: claim.answer, isReplayed: true };
  const acted = await run(trx, call);
  const answer = withoutFields(acted.json, call.action.shownOnce ?? []);
  await keepAnswer(trx, { tokenId, key }, { status: acted.status, answer });
  return acted;
}

async function run(trx: Transaction<Database>, { action, input, context }: Call): Promise<Acted> {
  const reply = await action.run(input, {
    ...context,
    trx,
    record: (...entries) => appendAllToLog(trx, context.caller, entries),
  });
  if ('stream' in reply) throw new Error(`${action.id} is an action and cannot answer with a stream`);
  return { status: reply.status, json: toJson(action, reply), isReplayed: false };
}

function hashOf({ action, input }: Call): Buffer {
  const asked = JSON.stringify([action.id, input.params ?? null, input.query ?? null, input.sent ?? null]);
  return createHash('sha256').update(asked).digest();
}

/** What is kept of the answer: a new token's value is sent once and not stored. */
function withoutFields(json: string, fields: readonly string[]): string {
  if (fields.length === 0) return json;
  const kept = Object.entries(parseJson(json) as object).filter(([name]) => !fields.includes(name));
  return JSON.stringify(Object.fromEntries(kept));
}
