// The composition root: turns a configuration into a running service and takes it down again in order.
// Everything is wired here and nowhere else; no part knows more than what it is handed.

import { randomUUID } from 'node:crypto';
import { createPublisher, type Publisher } from './broker/publisher.ts';
import { topologyOf } from './broker/topology.ts';
import type { Config } from './config.ts';
import { describeError, SchemaError } from './errors.ts';
import { createIntakeApp, intakeHeaders } from './http/apps.ts';
import { type Bodies, createBodies } from './http/bodies.ts';
import {
  CONNECTION_ENDS,
  type ConnectionEnd,
  type ConnectionLimits,
  type Connections,
  createConnections,
} from './http/connections.ts';
import type { Readiness } from './http/health.ts';
import { createTrustedProxies } from './http/proxies.ts';
import { createUnavailableLines } from './http/unavailable-lines.ts';
import { startServer } from './http/server.ts';
import { type BatchWriter, createBatchWriter } from './intake/batch-writer.ts';
import { createReceiver } from './intake/receiver.ts';
import { createRefusalLog, type RefusalLog } from './intake/refusal-log.ts';
import { createSecondLook } from './intake/second-look.ts';
import { createSources } from './intake/sources.ts';
import { connectDatabase, type DatabaseConnection, isMissingPartition } from './ledger/database.ts';
import { checkSchema, migrate } from './ledger/migrate.ts';
import { addDrift, createDriftLog, type DriftLog } from './ledger/drift.ts';
import { createFailureLog } from './ledger/failures.ts';
import { makePartitions } from './ledger/partitions.ts';
import { recordDeliveries } from './ledger/record.ts';
import { addRefusals } from './ledger/refusals.ts';
import { createRefusedAddresses, type RefusedAddresses } from './ledger/refused-addresses.ts';
import { createRollups, type Rollups } from './ledger/rollups.ts';
import { createSecretMatches, type SecretMatches } from './ledger/secret-matches.ts';
import { keepUp } from './ledger/upkeep.ts';
import type { Logger } from './log.ts';
import { createMetrics, type Metrics } from './metrics.ts';
import { composeOperators } from './operators.ts';
import { createOutboxEntries, type OutboxEntries } from './outbox/entries.ts';
import { createLease, type Lease, leaseTimeouts } from './outbox/lease.ts';
import { createRelay, type Relay } from './outbox/relay.ts';
import { createFeeder, type Feeder } from './replays/feeder.ts';
import { version } from './version.ts';

export type Service = AsyncDisposable & {
  readonly port: number;
  readonly operatorPort: number;
  /** Reads SOURCES_FILE again. Never rejects. */
  readonly reload: () => Promise<void>;
  /** Unready, drain, flush, finish confirms, give up the lease, disconnect. Safe to call twice. */
  readonly stop: () => Promise<void>;
};

// Beside those of deliveries and operators. Each pool has a connection for everyone who may use it at one time.
/** Whatever it queued behind could cost the lease. */
const LEASE_CONNECTIONS = 1;
/** A round, what became of copies beside it, and the gauges' look at the outbox. */
const RELAY_CONNECTIONS = 3;
/** Tallies and refusals take turns: they can wait, and all at once would be a burst. */
const COUNTS_CONNECTIONS = 1;
/** Replays, upkeep and the making of missing partitions, and health. */
const BACKGROUND_CONNECTIONS = 3;
/** Odd seconds, a turn apart: refusals are written in even ones. */
const FIRST_FLUSH_MS = {
  rollups: 3_000,
  drift: 5_000,
  secretMatches: 7_000,
  refusedAddresses: 9_000,
} as const;
/** A leader that is cut off from the broker for longer leaves the lease to a replica that may reach it. */
const LEAD_WITHOUT_BROKER_MS = 5_000;
const UPKEEP_INTERVAL_MS = 60 * 60 * 1_000;
/** After a run that left something to delete: the database is to have most of its time for others. */
const UPKEEP_CATCH_UP_MS = 10_000;
/** While writes find no partition, one is looked for so often. */
const MISSING_PARTITION_MS = 1_000;
const PREPARE_RETRY_MS = 1_000;
const HEALTH_CACHE_MS = 1_000;
const DEPTH_CACHE_MS = 5_000;
/**
 * Half of them for one address: operators behind one proxy share one, and do not shut out those who sit at the machine. A guess
 * of a token may wait for a second; guesses from several addresses must not keep all places for so long.
 */
const OPERATOR_CONNECTIONS = { connections: 256, perAddress: 128, endsRequests: true } as const;

const now = () => performance.now();

/**
 * Starts everything. Waits for Postgres as long as it takes, and not for RabbitMQ at all. Meanwhile it listens,
 * live and unready, and answers deliveries with 503.
 * @throws ConfigError for a broken SOURCES_FILE, SchemaError for a schema that does not fit, the server's
 *   error for a port that is taken, and the signal's reason when it is aborted before the service runs.
 */
export async function startService(
  config: Config,
  { log, signal, droppedLogLines = () => 0 }: StartOptions,
): Promise<Service> {
  const started = new AsyncDisposableStack(); // taken down in reverse order, also when a later step fails
  try {
    return await compose(config, { log, signal, droppedLogLines, started });
  } catch (error) {
    await started.disposeAsync();
    throw error;
  }
}

type StartOptions = {
  readonly log: Logger;
  readonly signal?: AbortSignal;
  /** Lines of the log that were dropped so far, for the metrics. */
  readonly droppedLogLines?: () => number;
};

type ComposeOptions = {
  readonly log: Logger;
  readonly signal: AbortSignal | undefined;
  readonly droppedLogLines: () => number;
  readonly started: AsyncDisposableStack;
};

type Parts = {
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly replicaId: string;
  readonly started: AsyncDisposableStack;
  /** What is left of the grace time, once it runs. */
  readonly graceMs: () => number;
};

async function compose(
  config: Config,
  { log, signal, droppedLogLines, started }: ComposeOptions,
): Promise<Service> {
  const state = { prepared: false, draining: false };
  let stopByMs: number | undefined;
  const graceMs = () => (stopByMs === undefined ? config.shutdown.graceMs : Math.max(0, stopByMs - now()));
  const parts: Parts = {
    log,
    metrics: createMetrics({ version }),
    replicaId: randomUUID(),
    started,
    graceMs,
  };

  const sources = await createSources({ ...config.sources, log });
  started.defer(sources.close);
  const database = connectDatabase({
    ...config.database,
    name: 'background',
    connections: BACKGROUND_CONNECTIONS,
    log,
  });
  started.defer(database.close);
  const upkeep = createUpkeep(config, database, parts); // before the servers: their stop waits for none of it

  const countsDatabase = connectDatabase({
    ...config.database,
    name: 'counts',
    connections: COUNTS_CONNECTIONS,
    log,
  });
  started.defer(countsDatabase.close);

  const counts = composeCounts(countsDatabase, parts);
  const relaying = composeRelay(config, database, { ...parts, counts });
  const { writer, refusals } = composeWriter(
    config,
    { upkeep: database, counts: countsDatabase },
    {
      ...parts,
      onRecorded: relaying.relay.nudge,
    },
  );
  const proxies = createTrustedProxies(config.proxies.trusted);
  if (proxies.trustsEverybody)
    log.warn('TRUSTED_PROXIES trusts every address: whoever reaches us can claim to be anybody');
  const connections = composeConnections(config, { ...parts, isExempt: proxies.isTrusted });
  const bodies = createBodies({ budgetBytes: config.http.unverifiedBodyBytes });
  const readiness = createReadiness({
    database,
    hasRoom: writer.hasRoom,
    connections: connections.intake.state,
    state: () => state,
    broker: relaying.publisher.state,
  });
  exposeGauges(parts.metrics, { writer, connections, bodies, ...relaying });
  parts.metrics.counted(
    'tallyhook_log_lines_dropped_total',
    'Lines of the log that were dropped while nobody read it, or lost to an error of its output.',
    droppedLogLines,
  );

  const ending = new AbortController();
  const operatorServer = await startServer({
    ...config.operator,
    // Each operation of the operators' API is listed in operators.ts.
    ...composeOperators({
      config,
      readiness,
      registry: parts.metrics.registry,
      connections: connections.operators,
      configuredSources: () => {
        const { names, fingerprintsOf } = sources.current();
        return names.map((name) => ({ name, fingerprints: fingerprintsOf(name) }));
      },
      proxies,
      ending: ending.signal,
      now,
      log,
      started,
    }),
    connections: connections.operators,
    maxConnections: OPERATOR_CONNECTIONS.connections,
  });
  started.defer(() => operatorServer.stop(graceMs()));
  started.defer(() => ending.abort()); // it would wait for those who listen

  const receiver = createReceiver({
    keyRing: sources.current,
    writer,
    refusals,
    noticeDrift: counts.drift.notice,
    now,
  });
  const unavailable = createUnavailableLines({ log });
  started.defer(unavailable.close);
  const intakeServer = await startServer({
    ...config.http,
    connections: connections.intake,
    standingHeaders: intakeHeaders,
    listener: createIntakeApp({
      ...config.http,
      receiver,
      bodies,
      connections: connections.intake,
      now,
      log,
      unavailable,
      observe: ({ source, outcome, remoteAddress, seconds, fingerprint }) => {
        parts.metrics.deliveries.inc({ source, outcome });
        parts.metrics.answerSeconds.observe({ outcome }, seconds);
        counts.rollups.answered(source, outcome, seconds * 1_000);
        if (fingerprint !== undefined) counts.secretMatches.notice(source, fingerprint);
        const isRefused = outcome === 'unauthorized' || outcome === 'refused';
        if (isRefused && remoteAddress !== null) counts.refusedAddresses.notice(source, remoteAddress);
      },
      readiness,
      proxies,
    }),
  });
  started.defer(() => intakeServer.stop(graceMs()));
  const { port } = intakeServer;
  log.info({ port, operatorPort: operatorServer.port, replica: parts.replicaId }, 'listening');

  await prepareDatabase(config, database, { log, signal });
  state.prepared = true;
  upkeep.start();
  relaying.lease.start();
  relaying.relay.start();
  relaying.feeder.start();

  let stopping: Promise<void> | undefined;
  async function stopOnce(): Promise<void> {
    state.draining = true;
    upkeep.end();
    intakeServer.drain();
    log.info('draining');
    // Balancers need a moment to see that we are unready before we stop listening, and kept-alive connections
    // one more request to be told so.
    await sleep(config.shutdown.delayMs);
    stopByMs = now() + config.shutdown.graceMs;
    await started.disposeAsync();
    log.info('stopped');
  }
  const stop = () => (stopping ??= stopOnce());
  return {
    port,
    operatorPort: operatorServer.port,
    reload: sources.reload,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

type Counts = {
  rollups: Rollups;
  drift: DriftLog;
  secretMatches: SecretMatches;
  refusedAddresses: RefusedAddresses;
};

/** What is counted in memory and written now and then. Taken down after all that counts. */
function composeCounts(connection: DatabaseConnection, { log, started }: Parts): Counts {
  const counts: Counts = {
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
  return counts;
}

type Faces = { readonly intake: Connections; readonly operators: Connections };

function composeConnections(
  config: Config,
  { log, metrics, isExempt }: Parts & { isExempt: (remoteAddress: string) => boolean },
): Faces {
  const { maxConnections, maxConnectionsPerAddress } = config.http;
  const createFor = (face: string, limits: ConnectionLimits) => {
    // A counter that does not start at 0 hides its first event.
    for (const reason of CONNECTION_ENDS) metrics.connectionEnds.inc({ face, reason }, 0);
    const observe = (reason: ConnectionEnd) => metrics.connectionEnds.inc({ face, reason });
    return createConnections({ name: face, limits, isExempt, now, log, observe });
  };
  return {
    intake: createFor('intake', { connections: maxConnections, perAddress: maxConnectionsPerAddress }),
    operators: createFor('operators', OPERATOR_CONNECTIONS),
  };
}

/** From the outbox to the bus. Taken down as: stop publishing, give up the lease, disconnect. */
function composeRelay(
  config: Config,
  database: DatabaseConnection,
  { log, metrics, replicaId, started, graceMs, counts }: Parts & { counts: Counts },
): { publisher: Publisher; lease: Lease; entries: OutboxEntries; relay: Relay; feeder: Feeder } {
  const publisher = createPublisher({
    ...config.broker,
    topology: topologyOf(config.broker),
    now,
    log,
    onReady: () => relay.nudge(),
  });
  started.defer(publisher.close);

  const leaseDatabase = connectDatabase({
    ...config.database,
    ...leaseTimeouts(config.relay.leaseMs),
    name: 'lease',
    connections: LEASE_CONNECTIONS,
    log,
  });
  started.defer(leaseDatabase.close);
  const lease = createLease({
    connection: leaseDatabase,
    holder: replicaId,
    leaseMs: config.relay.leaseMs,
    now,
    log,
    mayLead: () => publisher.awayMs() < LEAD_WITHOUT_BROKER_MS,
    onTaken: () => relay.nudge(),
  });
  started.defer(() =>
    lease.release().catch((error: unknown) => warn(log, error, 'the lease runs out by itself')),
  );

  const relayDatabase = connectDatabase({
    ...config.database,
    name: 'relay',
    connections: RELAY_CONNECTIONS,
    log,
  });
  started.defer(relayDatabase.close);
  const entries = createOutboxEntries(relayDatabase, { relayId: replicaId });
  const relay = createRelay({
    entries,
    lease,
    publisher,
    routingPrefix: config.broker.routingPrefix,
    limits: config.relay,
    now,
    random: Math.random,
    log,
    observe: (entry, publication) => {
      const { result, durationMs } = publication;
      metrics.publications.inc({ result });
      if (result === 'confirmed') metrics.publicationSeconds.observe(durationMs / 1_000);
      // How long ago a replayed event was accepted says nothing of the relay.
      if (entry.replay !== undefined) return;
      const lagMs = result === 'confirmed' ? Math.max(0, Date.now() - entry.recordedAt.getTime()) : null;
      counts.rollups.published(entry.source, result, lagMs);
      if (lagMs !== null) metrics.relayLagSeconds.observe(lagMs / 1_000);
    },
  });
  started.defer(() => relay.stop(graceMs()));

  const feeder = createFeeder({ connection: database, isHeld: lease.isHeld, now, log, onFed: relay.nudge });
  started.defer(feeder.stop);
  return { publisher, lease, entries, relay, feeder };
}

/** From a verified delivery to the ledger, on connections that nothing else may use. */
function composeWriter(
  config: Config,
  databases: { readonly upkeep: DatabaseConnection; readonly counts: DatabaseConnection },
  { log, metrics, started, onRecorded }: Parts & { onRecorded: () => void },
): { writer: BatchWriter; refusals: RefusalLog } {
  const intakeDatabase = connectDatabase({
    ...config.database,
    name: 'intake',
    connections: config.writer.batchesInFlight,
    log,
  });
  started.defer(intakeDatabase.close);
  const logFailure = createFailureLog({ now, log });
  const makeMissing = cached(MISSING_PARTITION_MS, () =>
    makePartitions(databases.upkeep).then(
      (made) => log.warn({ made }, 'partitions were missing'),
      (error: unknown) => warn(log, error, 'the missing partitions cannot be made'),
    ),
  );

  const lookAgain = createSecondLook({ execute: intakeDatabase.execute, log });
  const writer = createBatchWriter({
    record: async (batch) => {
      const recorded = await recordDeliveries(intakeDatabase, batch);
      onRecorded();
      return lookAgain(batch, recorded);
    },
    limits: config.writer,
    now,
    observe: ({ deliveries, seconds, failed, error }) => {
      metrics.batchDeliveries.observe(deliveries);
      metrics.batchSeconds.observe({ result: failed ? 'failed' : 'committed' }, seconds);
      if (failed) logFailure(error);
      if (isMissingPartition(error)) void makeMissing();
    },
  });
  const refusals = createRefusalLog({
    writer,
    addRefusals: (counts) => addRefusals(databases.counts, counts),
    rowsPerMinute: config.sources.refusedRowsPerMinute,
    patienceMs: config.http.answerDeadlineMs,
    now,
    log,
  });
  started.defer(refusals.close);
  return { writer, refusals };
}

/** `end`: no other part of it begins. What is under way is waited for when the service is taken down. */
function createUpkeep(
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

/** Retries while Postgres is away; a schema that does not fit will not fit later either. */
async function prepareDatabase(
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
      warn(log, error, 'Postgres is not ready, trying again');
      await sleep(PREPARE_RETRY_MS);
    }
  }
}

function createReadiness(options: {
  database: DatabaseConnection;
  hasRoom: () => boolean;
  connections: Connections['state'];
  state: () => { readonly prepared: boolean; readonly draining: boolean };
  broker: () => { connected: boolean; blocked: boolean };
}): () => Promise<Readiness> {
  const { database, hasRoom, connections, state, broker } = options;
  // Probes come from several places; each must not cost a query.
  const isPostgresUp = cached(HEALTH_CACHE_MS, () =>
    database.execute({ name: 'health', text: 'select 1' }, []).then(
      () => true,
      () => false,
    ),
  );
  return async () => {
    const isUp = await isPostgresUp();
    const { connected, blocked } = broker();
    const { prepared, draining } = state();
    return {
      ready: isUp && prepared && hasRoom() && connections() === 'room' && !draining,
      postgres: isUp ? 'up' : 'down',
      queue: hasRoom() ? 'room' : 'full',
      connections: connections(),
      draining,
      rabbitmq: !connected ? 'disconnected' : blocked ? 'blocked' : 'connected',
    };
  };
}

function exposeGauges(
  { gauge }: Metrics,
  parts: {
    writer: { waiting: () => { deliveries: number; bytes: number } };
    entries: OutboxEntries;
    relay: { inFlight: () => number };
    lease: { isHeld: () => boolean };
    publisher: { state: () => { connected: boolean; blocked: boolean } };
    connections: Faces;
    bodies: Bodies;
  },
): void {
  const { writer, relay, lease, publisher, connections, bodies } = parts;
  const depth = cached(DEPTH_CACHE_MS, () => parts.entries.depth());
  gauge(
    'tallyhook_write_queue_deliveries',
    'Deliveries that wait for their commit.',
    () => writer.waiting().deliveries,
  );
  gauge(
    'tallyhook_write_queue_bytes',
    'Bytes of deliveries that wait for their commit.',
    () => writer.waiting().bytes,
  );
  gauge('tallyhook_connections', 'Open connections of senders.', connections.intake.open);
  gauge(
    'tallyhook_operator_connections',
    "Open connections to the operators' port.",
    connections.operators.open,
  );
  gauge('tallyhook_unverified_body_bytes', 'Held for bodies that are being read.', bodies.heldBytes);
  gauge('tallyhook_relay_in_flight', 'Events published and not confirmed yet.', relay.inFlight);
  gauge('tallyhook_relay_lease_held', '1 on the replica that leads.', () => Number(lease.isHeld()));
  gauge('tallyhook_broker_connected', '1 while publishing is possible.', () =>
    Number(publisher.state().connected),
  );
  gauge('tallyhook_broker_blocked', '1 while the broker refuses to take more.', () =>
    Number(publisher.state().blocked),
  );
  // An unreachable database must not hide the other metrics: the last known depth would be a lie, so NaN.
  const known = async (read: (found: Awaited<ReturnType<OutboxEntries['depth']>>) => number) =>
    depth().then(read, () => Number.NaN);
  gauge('tallyhook_outbox_pending', 'Events still to be published.', () =>
    known(({ counts }) => counts.pending),
  );
  gauge('tallyhook_outbox_returned', 'Events that no queue was bound for.', () =>
    known(({ counts }) => counts.returned),
  );
  gauge('tallyhook_outbox_parked', 'Events that the relay gave up on.', () =>
    known(({ counts }) => counts.parked),
  );
  gauge('tallyhook_replay_entries', "Replays' copies in the outbox.", () => known(({ copies }) => copies));
  gauge('tallyhook_outbox_oldest_seconds', 'Age of the oldest event still to be published.', () =>
    known(({ oldestPendingS }) => oldestPendingS),
  );
}

/** Asks at most once in `maxAgeMs`, whoever calls. */
function cached<T>(maxAgeMs: number, ask: () => Promise<T>): () => Promise<T> {
  let answer: Promise<T> | undefined;
  let askedMs = 0;
  return () => {
    if (answer === undefined || now() - askedMs > maxAgeMs) {
      askedMs = now();
      answer = ask();
    }
    return answer;
  };
}

function warn(log: Logger, error: unknown, text: string): void {
  log.warn({ err: describeError(error) }, text);
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
