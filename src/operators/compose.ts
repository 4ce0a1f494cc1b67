// The operators' part of the composition: their own connections, who may ask, and all operations of their API. What they
// ask for runs here and never on a connection that deliveries or the relay need.

import type { Express } from 'express';
import type { Registry } from 'prom-client';
import { createAccess } from './access/authenticator.ts';
import { createLimits } from './access/limits.ts';
import { tokenHolds } from './access/tokens.ts';
import { readDeliveriesNamed } from './audit/deliveries.ts';
import { createLive } from './audit/live.ts';
import { readPublicationsNamed } from './audit/publications.ts';
import type { ConfiguredSource } from './audit/sources.ts';
import type { Config } from '../config.ts';
import { createApi } from './api/api.ts';
import { withDocument } from './api/document-operations.ts';
import { createExportOperations } from './api/export-operations.ts';
import { createItemOperations } from './api/item-operations.ts';
import { createListOperations } from './api/list-operations.ts';
import { createLogOperations } from './api/log-operations.ts';
import { createListeners } from './api/listeners.ts';
import { createLiveOperations } from './api/live-operations.ts';
import type { Operation } from './api/operation.ts';
import { createOutboxOperations } from './api/outbox-operations.ts';
import { createQuarantineOperations } from './api/quarantine-operations.ts';
import { createReplayOperations } from './api/replay-operations.ts';
import { createSourceOperations } from './api/source-operations.ts';
import { createStatsOperations } from './api/stats-operations.ts';
import { createTokenOperations } from './api/token-operations.ts';
import { createOperatorApp, type OperatorOptions, operatorHeaders } from './app.ts';
import {
  type StandingHeaders,
  type Readiness,
  createLimitedLines,
  type TrustedProxies,
} from '../http/index.ts';
import { connectDatabase, type DatabaseConnection } from '../ledger/index.ts';
import type { Logger } from '../log.ts';

/** Looking up a token must not wait for what others ask. */
const ACCESS_CONNECTIONS = 2;
const ACCESS_TIMEOUT_MS = 2_000;
/** Whoever changes a row is through sooner; what waits holds one of few connections. */
const LOCK_TIMEOUT_MS = 1_000;
/** Above the statement's own time-out, so that Postgres gives up first and undoes its work. */
const DRIVER_SLACK_MS = 1_000;

type Deps = {
  readonly config: Config;
  readonly readiness: () => Promise<Readiness>;
  readonly registry: Registry;
  readonly connections: OperatorOptions['connections'];
  /** As they are set up now. */
  readonly configuredSources: () => readonly ConfiguredSource[];
  readonly proxies: TrustedProxies;
  /** Ends answers that would never end by themselves. */
  readonly ending: AbortSignal;
  /** Monotonic. */
  readonly now: () => number;
  readonly log: Logger;
  readonly started: AsyncDisposableStack;
};

export function composeOperators(deps: Deps): { listener: Express; standingHeaders: StandingHeaders } {
  const { config, now, log, started } = deps;
  const connection = connectDatabase({
    url: config.database.url,
    name: 'operators',
    connections: config.operator.dbConnections,
    statementTimeoutMs: config.operator.queryTimeoutMs,
    lockTimeoutMs: LOCK_TIMEOUT_MS,
    queryTimeoutMs: config.operator.queryTimeoutMs + DRIVER_SLACK_MS,
    reading: 'planned',
    log,
  });
  started.defer(connection.close);
  const accessConnection = connectDatabase({
    url: config.database.url,
    name: 'access',
    connections: ACCESS_CONNECTIONS,
    statementTimeoutMs: ACCESS_TIMEOUT_MS,
    lockTimeoutMs: ACCESS_TIMEOUT_MS,
    queryTimeoutMs: ACCESS_TIMEOUT_MS + DRIVER_SLACK_MS,
    log,
  });
  started.defer(accessConnection.close);

  const access = createAccess({
    connection: accessConnection,
    environment: config.operator.environment,
    now,
    log,
  });
  started.defer(access.close);
  const limits = createLimits({ requestsPerMinute: config.operator.requestsPerMinute, now: Date.now });
  const strangerLines = createLimitedLines({
    tellRest: (statuses) => log.info({ statuses }, 'more operators requests without a token'),
  });
  started.defer(strangerLines.close);
  const operations = withDocument(operationsOn({ ...deps, connection, accessConnection }));
  const listener = createOperatorApp({
    ...deps,
    access,
    limits,
    strangerLines,
    api: createApi({ operations, connection, log }),
    isMetricsOpen: config.operator.isMetricsOpen,
  });
  return { listener, standingHeaders: operatorHeaders({ limits }) };
}

type Connections = { readonly connection: DatabaseConnection; readonly accessConnection: DatabaseConnection };

/** What is written under the statement time-out of deliveries and the relay may take so much longer to be seen. */
const COMMIT_SLACK_MS = 1_000;

const holdsOn = (connection: DatabaseConnection) => (tokenId: string) => tokenHolds(connection, tokenId);

function liveOperations(deps: Deps & Connections): readonly Operation[] {
  const { config, connection, accessConnection, ending, now, log, started } = deps;
  const listeners = createListeners({ holds: holdsOn(accessConnection), now, log });
  ending.addEventListener('abort', listeners.end);
  const live = createLive({
    connection,
    readers: {
      deliveries: (keys) => readDeliveriesNamed(connection.db, keys),
      publications: (keys) => readPublicationsNamed(connection.db, keys),
    },
    lateMs: config.database.statementTimeoutMs + COMMIT_SLACK_MS,
    log,
  });
  started.defer(live.close);
  return createLiveOperations({ live, listeners });
}

/** Each folder of operations has its line here; the API's document and routes follow from it. */
function operationsOn(deps: Deps & Connections): readonly Operation[] {
  const { config, connection } = deps;
  return [
    ...createListOperations({ connection }),
    ...createItemOperations({ connection }),
    ...createExportOperations({
      connection,
      holds: holdsOn(deps.accessConnection),
      log: deps.log,
    }),
    ...createLogOperations({ connection }),
    ...createTokenOperations({ connection, environment: config.operator.environment }),
    ...createReplayOperations({ connection }),
    ...createQuarantineOperations(),
    ...createOutboxOperations(),
    ...createStatsOperations({ connection, now: Date.now }),
    ...liveOperations(deps),
    ...createSourceOperations({ connection, configuredSources: deps.configuredSources }),
  ];
}
