// The ledger's own part of the composition: its schema, its upkeep, and what is counted beside the deliveries.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../config.ts';
import { describeError, SchemaError } from '../errors.ts';
import type { Logger } from '../log.ts';
import type { Parts } from '../parts.ts';
import { connectDatabase, type DatabaseConnection } from './database.ts';
import { addDrift, createDriftLog, type DriftLog } from './drift.ts';
import { checkSchema, migrate } from './migrate.ts';
import { makePartitions } from './partitions.ts';
import { createRefusedAddresses, type RefusedAddresses } from './refusals.ts';
import { createRollups, type Rollups } from './rollups.ts';
import { createSecretMatches, type SecretMatches } from './secret-matches.ts';
import { keepUp } from './upkeep.ts';

/** Tallies and refusals take turns: they can wait, and all at once would be a burst. */
const COUNTS_CONNECTIONS = 1;
/** Odd seconds, a turn apart: refusals are written in even ones. */
const FIRST_FLUSH_MS = {
  rollups: 3_000,
  drift: 5_000,
  secretMatches: 7_000,
  refusedAddresses: 9_000,
} as const;
const UPKEEP_INTERVAL_MS = 60 * 60 * 1_000;
/** After a run that left something to delete: the database is to have most of its time for others. */
const UPKEEP_CATCH_UP_MS = 10_000;
const PREPARE_RETRY_MS = 1_000;

export type Counts = {
  /** The connection that they take turns on. */
  readonly connection: DatabaseConnection;
  readonly rollups: Rollups;
  readonly drift: DriftLog;
  readonly secretMatches: SecretMatches;
  readonly refusedAddresses: RefusedAddresses;
};

/** What is counted in memory and written now and then. Taken down after all that counts. */
export function composeCounts(config: Config, { now, log, started }: Parts): Counts {
  const connection = connectDatabase({
    ...config.database,
    name: 'counts',
    connections: COUNTS_CONNECTIONS,
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
  };
  started.defer(async () => {
    // One after the other: they share a connection, and each waits for it no longer than for a statement.
    for (const count of Object.values(counts)) await count.close();
  });
  return { connection, ...counts };
}

/** Retries while Postgres is away; a schema that does not fit will not fit later either. */
export async function prepareLedger(
  config: Config,
  database: DatabaseConnection,
  { log, signal }: { log: Logger; signal: AbortSignal | undefined },
): Promise<void> {
  for (;;) {
    signal?.throwIfAborted();
    try {
      if (config.database.migrateOnStart) {
        const ran = await migrate(config.database.url, config.database.migrationUrl);
        if (ran.length > 0) log.info({ migrations: ran }, 'schema migrated');
      } else {
        await checkSchema(config.database.url);
      }
      await makePartitions(database);
      return;
    } catch (error) {
      if (error instanceof SchemaError) throw error;
      log.warn({ err: describeError(error) }, 'Postgres is not ready, trying again');
      await sleep(PREPARE_RETRY_MS);
    }
  }
}

/** `end`: no other part of it begins. What is under way is waited for when the service is taken down. */
export function createUpkeep(
  config: Config,
  database: DatabaseConnection,
  { log, started }: Parts,
): { start: () => void; end: () => void } {
  const { retentionDays } = config.database;
  const ending = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let upkeep = Promise.resolve();
  const run = async () => {
    const isDone = await keepUp(database, { retentionDays, signal: ending.signal, log });
    if (!ending.signal.aborted) schedule(isDone ? UPKEEP_INTERVAL_MS : UPKEEP_CATCH_UP_MS);
  };
  const schedule = (inMs: number) => {
    timer = setTimeout(() => {
      upkeep = run();
    }, inMs);
  };
  const end = () => {
    ending.abort();
    clearTimeout(timer);
  };
  started.defer(() => {
    end();
    return upkeep;
  });
  return {
    start: () => {
      upkeep = run();
    },
    end,
  };
}
