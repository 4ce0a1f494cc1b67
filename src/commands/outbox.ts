// `tallyhook outbox`: shows an operator which events wait for a decision, and publishes them again on request.

import { type Env, loadUrls } from '../config.ts';
import { UsageError } from '../errors.ts';
import { connectDatabase, type DatabaseConnection } from '../ledger/database.ts';
import type { OutboxState } from '../ledger/tables.ts';
import { createLog } from '../log.ts';
import { listEntries, retryEntries } from '../outbox/operate.ts';
import { complain, paint, say } from './output.ts';

const TIMEOUT_MS = 30_000;
const COLOURS = { pending: 'cyan', returned: 'yellow', parked: 'red' } as const;

/** A line an entry for a person, NDJSON where standard output is piped. */
export function listOutbox(
  options: { states: readonly OutboxState[]; limit: number },
  env: Env,
): Promise<number> {
  return withDatabase(env, async ({ db }) => {
    const entries = await listEntries(db, options);
    for (const entry of entries) {
      const { id, state, attempts, recordedAt, lastError } = entry;
      const line = `${paint(COLOURS[state], state.padEnd(8))}  ${recordedAt.toISOString()}  ${attempts} attempts  ${id}`;
      say(process.stdout.isTTY ? `${line}  ${paint('dim', lastError ?? '')}` : JSON.stringify(entry));
    }
    if (entries.length === 0) complain(`nothing is ${options.states.join(' or ')}`);
    return 0;
  });
}

/** Exit code 1 if there was nothing to put back. */
export function retryOutbox(what: string, env: Env): Promise<number> {
  return withDatabase(env, async ({ db }) => {
    const count = await retryEntries(db, what === 'returned' || what === 'parked' ? what : { id: what });
    if (count === undefined) throw new UsageError('--retry takes an event id, "returned" or "parked"');
    say(`${count} put back to be published`);
    return count > 0 ? 0 : 1;
  });
}

async function withDatabase<T>(env: Env, use: (database: DatabaseConnection) => Promise<T>): Promise<T> {
  const database = connectDatabase({
    url: loadUrls(env).databaseUrl,
    name: 'outbox command',
    connections: 1,
    statementTimeoutMs: TIMEOUT_MS,
    lockTimeoutMs: TIMEOUT_MS,
    queryTimeoutMs: TIMEOUT_MS,
    log: createLog({ level: 'error', pretty: false }),
  });
  try {
    return await use(database);
  } finally {
    await database.close();
  }
}
