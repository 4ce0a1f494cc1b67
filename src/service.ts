// The composition root: turns a configuration into a running service and takes it down again in order. Each room composes
// its own part (`compose.ts`); here they are put together and nowhere else, and no part knows more than what it is handed.

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { cached } from './cached.ts';
import type { Config } from './config.ts';
import {
  CONNECTION_ENDS,
  type ConnectionEnd,
  type ConnectionLimits,
  type Connections,
  createConnections,
  type Readiness,
  createTrustedProxies,
  startServer,
} from './http/index.ts';
import { composeIntake, createSources } from './intake/index.ts';
import {
  composeCounts,
  createUpkeep,
  prepareLedger,
  connectDatabase,
  type DatabaseConnection,
} from './ledger/index.ts';
import type { Logger } from './log.ts';
import { createMetrics } from './metrics.ts';
import { composeOperators } from './operators/index.ts';
import type { Parts } from './parts.ts';
import { composeRelay } from './relay/index.ts';
import { version } from './version.ts';

export type Service = AsyncDisposable & {
  readonly port: number;
  readonly operatorPort: number;
  /** Reads SOURCES_FILE again. Never rejects. */
  readonly reload: () => Promise<void>;
  /** Unready, drain, flush, finish confirms, give up the lease, disconnect. Safe to call twice. */
  readonly stop: () => Promise<void>;
};

/** Replays, upkeep with the making of missing partitions, and health: a connection for each who may use it at one time. */
const BACKGROUND_CONNECTIONS = 3;
const HEALTH_CACHE_MS = 1_000;
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
    now,
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

  const counts = composeCounts(config, parts);
  const relaying = composeRelay(config, { ...parts, counts });
  const proxies = createTrustedProxies(config.proxies.trusted);
  if (proxies.trustsEverybody)
    log.warn('TRUSTED_PROXIES trusts every address: whoever reaches us can claim to be anybody');
  const connections = composeConnections(config, { ...parts, isExempt: proxies.isTrusted });
  const intake = composeIntake(config, {
    ...parts,
    sources,
    counts,
    connections: connections.intake,
    proxies,
    upkeepDatabase: database,
    onRecorded: relaying.nudge,
  });
  const readiness = createReadiness({
    database,
    hasRoom: intake.hasRoom,
    connections: connections.intake.state,
    state: () => state,
    broker: relaying.brokerState,
  });
  parts.metrics.counted(
    'tallyhook_log_lines_dropped_total',
    'Lines of the log that were dropped while nobody read it, or lost to an error of its output.',
    droppedLogLines,
  );

  const ending = new AbortController();
  // Each operation of the operators' API is listed in operators/compose.ts.
  const operators = composeOperators(config, {
    ...parts,
    readiness,
    connections: connections.operators,
    configuredSources: () => {
      const { names, fingerprintsOf } = sources.current();
      return names.map((name) => ({ name, fingerprints: fingerprintsOf(name) }));
    },
    proxies,
    ending: ending.signal,
    backgroundDatabase: database,
    isLeading: relaying.isLeading,
    onFed: relaying.nudge,
  });
  const operatorServer = await startServer({
    ...config.operator,
    listener: operators.listener,
    standingHeaders: operators.standingHeaders,
    connections: connections.operators,
    maxConnections: OPERATOR_CONNECTIONS.connections,
  });
  started.defer(() => operatorServer.stop(graceMs()));
  started.defer(() => ending.abort()); // it would wait for those who listen

  const intakeServer = await intake.listen(readiness);
  const { port } = intakeServer;
  log.info({ port, operatorPort: operatorServer.port, replica: parts.replicaId }, 'listening');

  await prepareLedger(config, database, { log, signal });
  state.prepared = true;
  upkeep.start();
  relaying.start();
  operators.startFeeder();

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
  const faces = {
    intake: createFor('intake', { connections: maxConnections, perAddress: maxConnectionsPerAddress }),
    operators: createFor('operators', OPERATOR_CONNECTIONS),
  };
  metrics.gauge('tallyhook_connections', 'Open connections of senders.', faces.intake.open);
  metrics.gauge(
    'tallyhook_operator_connections',
    "Open connections to the operators' port.",
    faces.operators.open,
  );
  return faces;
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
  const isPostgresUp = cached({
    maxAgeMs: HEALTH_CACHE_MS,
    ask: () =>
      database.execute({ name: 'health', text: 'select 1' }, []).then(
        () => true,
        () => false,
      ),
    now,
  });
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
