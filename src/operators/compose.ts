// The operators' part of the composition: the API with all its operations, and the feeder of replays. The API runs on
// database connections of its own, so that it takes none from deliveries and the relay.

import type { Express } from 'express';
import type { Parts } from '../base/parts.ts';
import type { Config } from '../config.ts';
import {
  createLimitedLines,
  type Readiness,
  type StandingHeaders,
  type TrustedProxies,
} from '../http/index.ts';
import { connectDatabase, type DatabaseConnection } from '../ledger/index.ts';
import { createOperatorApp, type OperatorOptions, operatorHeaders } from './app.ts';
import { createAuthenticator } from './kernel/access/authenticator.ts';
import { createLimits } from './kernel/access/limits.ts';
import { createConsole } from './kernel/console/console.ts';
import { createDocsRouter } from './kernel/document/router.ts';
import { createApi } from './kernel/operation/api.ts';
import { createPerform } from './kernel/operation/perform.ts';
import { type OperationParts, operationsOf } from './operations.ts';
import { PAGES } from './pages.ts';
import { createFeeder } from './replays/feeder/feeder.ts';

/** The look-up of a token must not wait for operations: it has a pool of its own. */
const TOKEN_CONNECTIONS = 2;
const TOKEN_TIMEOUT_MS = 2_000;
/** Longer than an action keeps a row locked; a wait for a lock takes one of few connections. */
const LOCK_TIMEOUT_MS = 1_000;
/** Above the statement's own time-out, so that Postgres gives up first and rolls back. */
const DRIVER_SLACK_MS = 1_000;
type OperatorParts = Parts & {
  readonly readiness: () => Promise<Readiness>;
  readonly connections: OperatorOptions['connections'];
  readonly configuredSources: OperationParts['configuredSources'];
  readonly watched: OperationParts['watched'];
  readonly hasQueue: OperationParts['hasQueue'];
  /** Where this replica listens for senders. */
  readonly intake: () => { readonly host: string; readonly port: number };
  readonly proxies: TrustedProxies;
  /** Ends streams, which do not end by themselves. */
  readonly ending: AbortSignal;
};

export type Operators = {
  readonly listener: Express;
  readonly standingHeaders: StandingHeaders;
};

/** The feeder works while this replica leads the relay. `onFed`: it has put copies into the outbox. */
export function composeReplays(
  parts: Parts & {
    readonly connection: DatabaseConnection;
    readonly isLeading: () => boolean;
    readonly onFed: () => void;
  },
): { readonly start: () => void } {
  const feeder = createFeeder(parts);
  parts.started.defer(feeder.stop);
  return feeder;
}

export function composeOperators(config: Config, parts: OperatorParts): Operators {
  const { metrics, now, log, started } = parts;
  const { connection, tokenConnection } = connectDatabases(config, parts);
  const authenticator = createAuthenticator({
    connection: tokenConnection,
    environment: config.operator.environment,
    now,
    log,
  });
  started.defer(authenticator.close);
  const limits = createLimits({ requestsPerMinute: config.operator.requestsPerMinute, now: Date.now });
  const strangerLines = createLimitedLines({
    tellRest: (statuses) => log.info({ statuses }, 'more operators requests without a token'),
  });
  started.defer(strangerLines.close);
  const operations = operationsOf(config, { ...parts, connection, tokenConnection });
  const perform = createPerform({ connection });
  const consolePages = createConsole({
    ...parts,
    operations,
    pages: PAGES,
    perform,
    environment: config.operator.environment,
    authenticator,
    limits,
    strangerLines,
    tokenConnection,
    sources: () => parts.configuredSources().map(({ name }) => name),
  });
  const listener = createOperatorApp({
    ...parts,
    registry: metrics.registry,
    authenticator,
    limits,
    strangerLines,
    docs: createDocsRouter({ operations, bus: config.broker, intake: config.http }),
    api: createApi({ operations, perform, log }),
    console: consolePages,
    isMetricsOpen: config.operator.isMetricsOpen,
  });
  return { listener, standingHeaders: operatorHeaders({ limits }) };
}

type Databases = { readonly connection: DatabaseConnection; readonly tokenConnection: DatabaseConnection };

function connectDatabases(config: Config, { identity, log, sessions, started }: Parts): Databases {
  const connection = connectDatabase({
    url: config.database.url,
    name: 'operators',
    connections: config.operator.dbConnections,
    statementTimeoutMs: config.operator.queryTimeoutMs,
    lockTimeoutMs: LOCK_TIMEOUT_MS,
    queryTimeoutMs: config.operator.queryTimeoutMs + DRIVER_SLACK_MS,
    reading: 'planned',
    identity,
    mayBeReadOnly: true,
    sessions,
    log,
  });
  started.defer(connection.close);
  const tokenConnection = connectDatabase({
    url: config.database.url,
    name: 'access',
    connections: TOKEN_CONNECTIONS,
    statementTimeoutMs: TOKEN_TIMEOUT_MS,
    lockTimeoutMs: TOKEN_TIMEOUT_MS,
    queryTimeoutMs: TOKEN_TIMEOUT_MS + DRIVER_SLACK_MS,
    mayBeReadOnly: true,
    sessions,
    log,
  });
  started.defer(tokenConnection.close);
  return { connection, tokenConnection };
}
