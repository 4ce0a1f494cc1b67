// The ledger's part of the composition: the schema at start, and the counts that are written beside the deliveries.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../config.ts';
import { describeError, SchemaError } from '../base/errors.ts';
import type { Logger } from '../base/log/log.ts';
import type { Parts } from '../base/parts.ts';
import { connectDatabase, type DatabaseConnection } from './sessions/database.ts';
import { addDrift, createDriftLog, type DriftLog } from './understanding/drift.ts';
import { isAway } from './sessions/failures.ts';
import { checkSchema, migrate } from './schema/migrate.ts';
import { makePartitions } from './upkeep/partitions.ts';
import { createRefusedAddresses, type RefusedAddresses } from './counts/refusals.ts';
import { createRollups, type Rollups } from './counts/rollups.ts';
import { createSecretMatches, type SecretMatches } from './counts/secret-matches.ts';
import { createUnansweredLog, type UnansweredLog } from './counts/unanswered.ts';

/** One for all counts: they can wait, and several at once would be a burst of load. */
const COUNTS_CONNECTIONS = 1;
/** Different odd seconds: refusals are written in even ones (intake). */
const FIRST_FLUSH_MS = {
  unanswered: 1_000,
  rollups: 3_000,
  drift: 5_000,
  secretMatches: 7_000,
  refusedAddresses: 9_000,
} as const;
const PREPARE_RETRY_MS = 1_000;
/** Opens a session, which is checked. */
const SESSION = { name: 'session', text: 'select 1' };

export type Counts = {
  /** Shared by all of them, and by the refusals of the intake. */
  readonly connection: DatabaseConnection;
  readonly rollups: Rollups;
  readonly drift: DriftLog;
  readonly secretMatches: SecretMatches;
  readonly refusedAddresses: RefusedAddresses;
  readonly unanswered: UnansweredLog;
};

/** Counts in memory, written at intervals. Closed after the parts that count. */
export function composeCounts(config: Config, { now, log, sessions, started }: Parts): Counts {
  const connection = connectDatabase({
    ...config.database,
    name: 'counts',
    connections: COUNTS_CONNECTIONS,
    sessions,
    log,
  });
  started.defer(connection.close);
  const counts = {
    rollups: createRollups({ connection, firstFlushMs: FIRST_FLUSH_MS.rollups, now, log }),
    drift: createDriftLog({
      addDrift: (rows) => addDrift(connection, rows),
      firstFlushMs: FIRST_FLUSH_MS.drift,
      log,
    }),
    secretMatches: createSecretMatches({ connection, firstFlushMs: FIRST_FLUSH_MS.secretMatches, log }),
    refusedAddresses: createRefusedAddresses({
      connection,
      firstFlushMs: FIRST_FLUSH_MS.refusedAddresses,
      log,
    }),
    unanswered: createUnansweredLog({ connection, firstFlushMs: FIRST_FLUSH_MS.unanswered, log }),
  };
  started.defer(async () => {
    // One after another: they share a connection, and a query waits for it no longer than the connect time-out.
    for (const count of Object.values(counts)) await count.close();
  });
  return { connection, ...counts };
}

/**
 * Migrates if configured, checks the schema, and makes partitions. Retries while Postgres is down, also if it goes away in a migration.
 * @throws SchemaError at once: a schema that does not fit will not fit later either
 */
export async function prepareLedger(
  config: Config,
  database: DatabaseConnection,
  { log, signal, onAway }: { log: Logger; signal: AbortSignal | undefined; onAway?: () => void },
): Promise<void> {
  for (;;) {
    signal?.throwIfAborted();
    try {
      await database.execute(SESSION, []); // before migrations: some servers and poolers must not be used
      if (config.database.migrateOnStart) {
        const ran = await migrate(config.database.url, config.database.migrationUrl);
        if (ran.length > 0) log.info({ migrations: ran }, 'schema migrated');
      }
      const newer = await checkSchema(config.database.url);
      if (newer.length > 0) {
        log.warn({ migrations: newer }, 'the schema is newer than this program, which may still run on it');
      }
      await makePartitions(database);
      return;
    } catch (error) {
      if (error instanceof SchemaError && !isAway(error.cause)) throw error;
      onAway?.();
      log.warn({ err: describeError(error) }, 'Postgres is not ready, trying again');
      await sleep(PREPARE_RETRY_MS);
    }
  }
}
