// The composition root: turns a configuration into a running service, and takes it down again in order. Each room composes its
// own part (`compose.ts`); only this file connects them, and each part knows only what it is given.

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from './config.ts';
import {
  createReadiness,
  composeConnections,
  composeUnparsed,
  type ConnectionLimits,
  createTrustedProxies,
  startServer,
} from './http/index.ts';
import { composeIntake, createSources } from './intake/index.ts';
import {
  composeCounts,
  composeHeartbeat,
  composeLooks,
  connectDatabase,
  createIdentity,
  createLossWatch,
  createSessions,
  createUpkeep,
  type DatabaseConnection,
  type LossWatch,
  prepareLedger,
  saveContent,
} from './ledger/index.ts';
import type { Logger } from './base/log/log.ts';
import { createMetrics } from './base/metrics.ts';
import { appendToLog, composeOperators, composeReplays } from './operators/index.ts';
import type { Parts } from './base/parts.ts';
import { composeRelay } from './relay/index.ts';
import { composeWatch, type WatchTiming } from './watch/index.ts';
import { version } from './base/version.ts';

export type Service = AsyncDisposable & {
  readonly port: number;
  readonly operatorPort: number;
  /** Reads SIGNING_SECRETS_FILE, SOURCES_FILE and ALERTS_FILE again. Never rejects. */
  readonly reload: () => Promise<void>;
  /** Unready, drain, flush, finish confirms, give up the lease, disconnect. Safe to call twice. */
  readonly stop: () => Promise<void>;
};

type StartOptions = {
  readonly log: Logger;
  readonly signal?: AbortSignal;
  /** Lines of the log that were dropped so far, for the metrics. */
  readonly droppedLogLines?: () => number;
  /** For tests, which cannot wait for minutes. */
  readonly watchTiming?: WatchTiming;
};

/** One for replays, one for upkeep and missing partitions, one for the looks of the watch and, after a restore, to look for lost deliveries. */
const BACKGROUND_CONNECTIONS = 3;
/**
 * Operators behind one proxy share an address; they may take half of the connections, so that those on the machine itself are not
 * locked out. Strangers' requests are ended to make room: a guess of a token may wait for a second, and guesses from several
 * addresses must not take all places for so long.
 */
const OPERATOR_LIMITS: ConnectionLimits = { connections: 256, perAddress: 128, endsRequests: true };

const now = () => performance.now();

/**
 * Starts everything. Waits for Postgres without a limit, and does not wait for RabbitMQ. Meanwhile it listens,
 * live and unready, and answers deliveries with 503.
 * @throws ConfigError for a broken file of secrets or alerts, SchemaError for a schema that does not fit, the server's
 *   error for a port that is taken, and the signal's reason when it is aborted before the service runs.
 */
export async function startService(config: Config, options: StartOptions): Promise<Service> {
  const started = new AsyncDisposableStack(); // taken down in reverse order, also when a later step fails
  try {
    return await compose(config, options, started);
  } catch (error) {
    await started.disposeAsync();
    throw error;
  }
}

async function compose(
  config: Config,
  { log, signal, droppedLogLines = () => 0, watchTiming }: StartOptions,
  started: AsyncDisposableStack,
): Promise<Service> {
  const state = { prepared: false, draining: false, port: config.http.port };
  let stopByMs: number | undefined;
  const graceMs = () => (stopByMs === undefined ? config.shutdown.graceMs : Math.max(0, stopByMs - now()));
  const sources = await createSources({ ...config.sources, log });
  started.defer(sources.close);
  const metrics = createMetrics({ version, sources: () => sources.current().names });
  const identity = createIdentity({ log });
  const sessions = createSessions({ url: config.database.url, log, metrics });
  const parts: Parts = { log, metrics, sessions, replicaId: randomUUID(), identity, now, started, graceMs };
  const database = connectDatabase({
    ...config.database,
    name: 'background',
    connections: BACKGROUND_CONNECTIONS,
    identity,
    sessions,
    log,
  });
  started.defer(database.close);
  const lossWatch = composeLossWatch(config, database, parts);
  const upkeep = createUpkeep(config, database, { ...parts, beforeDrop: saveContent }); // before the servers, whose stop must not wait for it
  const heartbeat = composeHeartbeat(config, {
    ...parts,
    signs: () => watch.signs(),
    intervalMs: watchTiming?.beatMs,
  });
  const counts = composeCounts(config, parts);
  const looks = composeLooks(config, {
    ...parts,
    sources: () => sources.current().names,
    maxAgeMs: watchTiming?.lookMs,
  });
  const relay = composeRelay(config, { ...parts, counts });
  const replays = composeReplays({
    ...parts,
    connection: database,
    isLeading: relay.isLeading,
    onFed: relay.nudge,
  });
  const proxies = createTrustedProxies(config.proxies.trusted);
  if (proxies.trustsEverybody)
    log.warn('TRUSTED_PROXIES trusts every address: any client can claim any address');
  const { intakeConnections, operatorConnections } = composeAllConnections(config, proxies.isTrusted, parts);

  const intake = composeIntake(config, {
    ...parts,
    sources,
    counts,
    connections: intakeConnections,
    proxies,
    upkeepDatabase: database,
    onAcknowledged: lossWatch.acknowledged,
    handOff: relay.handOff,
    backpressure: relay.backpressure,
  });
  const readiness = createReadiness({
    canRecord: intake.canRecord,
    hasRoom: intake.hasRoom,
    connections: intakeConnections.state,
    state,
    broker: relay.brokerState,
  });
  metrics.gauge('tallyhook_database_connected', async () => Number((await readiness()).postgres === 'up'));
  metrics.counted('tallyhook_log_lines_dropped_total', droppedLogLines);

  const watch = await composeWatch(config, {
    ...parts,
    connection: database,
    beside: heartbeat.connection,
    looks,
    broker: relay.brokerState,
    takesDeliveries: intake.canRecord,
    sources: sources.current,
    timing: watchTiming,
  });

  const ending = new AbortController();
  // Each operation of the operators' API is listed in operators/compose.ts.
  const operators = composeOperators(config, {
    ...parts,
    readiness,
    connections: operatorConnections,
    configuredSources: () => {
      const { names, fingerprintsOf } = sources.current();
      return names.map((name) => ({ name, fingerprints: fingerprintsOf(name) }));
    },
    watched: watch,
    hasQueue: relay.hasQueue,
    intake: () => ({ host: config.http.host, port: state.port }),
    proxies,
    ending: ending.signal,
  });
  const operatorServer = await startServer({
    ...config.operator,
    ...operators,
    connections: operatorConnections,
    unparsed: composeUnparsed('operators', parts),
    maxConnections: OPERATOR_LIMITS.connections,
  });
  started.defer(() => operatorServer.stop(graceMs()));
  started.defer(() => ending.abort()); // or the stop would wait for event streams, which never end by themselves
  const intakeServer = await intake.listen(readiness);
  state.port = intakeServer.port;
  const ports = { port: intakeServer.port, operatorPort: operatorServer.port };
  log.info({ ...ports, replica: parts.replicaId }, 'listening');

  await prepareLedger(config, database, { log, signal, onAway: watch.postgresWasAway });
  await intake.prepare();
  state.prepared = true;
  upkeep.start();
  heartbeat.start();
  watch.start();
  relay.start();
  replays.start();

  let stopping: Promise<void> | undefined;
  async function stopOnce(): Promise<void> {
    state.draining = true;
    upkeep.end();
    intakeServer.drain();
    log.info('draining');
    // Balancers need a moment to see that we are unready, and kept-alive connections one more request to be told to close.
    await sleep(config.shutdown.delayMs);
    stopByMs = now() + config.shutdown.graceMs;
    await started.disposeAsync();
    log.info('stopped');
  }
  const reload = async () => void (await Promise.all([sources.reload(), watch.reload()]));
  const stop = () => (stopping ??= stopOnce());
  return { ...ports, reload, stop, [Symbol.asyncDispose]: stop };
}

/** Looks for lost deliveries when the database has changed, and tells operators of a loss. */
function composeLossWatch(
  { database: { retentionDays } }: Config,
  database: DatabaseConnection,
  { identity, replicaId, metrics, started, log }: Parts,
): LossWatch {
  const actor = { tokenId: null, name: `replica ${replicaId}`, role: 'service', remoteAddress: null };
  const lossWatch = createLossWatch({
    connection: database,
    retentionDays,
    onLoss: ({ deliveryId, ...detail }) =>
      appendToLog(database.db, actor, { action: 'database.loss', subject: deliveryId, detail }),
    log,
  });
  started.defer(lossWatch.close);
  identity.onChange(() => void lossWatch.look());
  metrics.counted('tallyhook_database_losses_total', lossWatch.losses);
  return lossWatch;
}

/** The connections of the two servers. Those of trusted proxies have no limit for their address. */
function composeAllConnections({ http }: Config, isExempt: (remoteAddress: string) => boolean, parts: Parts) {
  const limits = { connections: http.maxConnections, perAddress: http.maxConnectionsPerAddress };
  const intakeConnections = composeConnections({ face: 'intake', limits, isExempt }, parts);
  const operatorConnections = composeConnections(
    { face: 'operators', limits: OPERATOR_LIMITS, isExempt },
    parts,
  );
  return { intakeConnections, operatorConnections };
}
