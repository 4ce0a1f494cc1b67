// What all pools of a replica know together of their sessions with Postgres: how many there may be, to which schema they are
// pinned, whether a pooler stands between, and which of them give no answer. Says in the log and counts which could not be used.

import type { Logger } from 'pino';
import { POOLS, SESSION_FAULTS } from '../../base/closed-sets.ts';
import { SessionError } from '../../base/errors.ts';
import type { Metrics } from '../../base/metrics.ts';
import { refusalOf } from './failures.ts';
import { isShared } from './pooler.ts';
import type { Ask, Session } from './session.ts';
import { readSessionUrl, serversIn } from './session-url.ts';
import { createServers, type Server, type Servers } from './servers.ts';
import { createSilence, type Silence } from './silence.ts';
import { isOfServer } from './sql-errors.ts';
import { makeClient } from './tls.ts';

/** One sentence of a kind in so long, for each pool. */
const SENTENCE_INTERVAL_MS = 10_000;
/** A pooler may be configured otherwise while we run. */
const POOLER_KNOWN_MS = 10 * 60_000;
/** For a connection with one question, such as to a pooler that may have no free session. Shorter than a pool waits for a connection. */
const ONCE_TIMEOUT_MS = 1_000;
/** Before the first probe of an idle socket; without it the system waits for two hours. The rest is the system's: ten, a second apart. */
export const KEEP_ALIVE_DELAY_MS = 3_000;

export type Sessions = {
  /** A pool of so many. */
  readonly add: (connections: number) => void;
  readonly max: () => number;
  /** What search_path was pinned to first. */
  readonly path: () => string | undefined;
  readonly note: (session: Session) => void;
  /** @throws SessionError if the pooler in between gives sessions to several clients, or has none left to find that out */
  readonly checkPooler: (first: First) => Promise<void>;
  readonly refused: (pool: string, error: SessionError) => void;
  /** A statement or a log-in failed. */
  readonly failed: (error: unknown) => void;
  readonly silence: Silence;
  readonly servers: Servers;
};

type First = { readonly ask: Ask; readonly pid: number; readonly server: Server };

export function createSessions({
  url,
  log,
  metrics,
}: {
  url: string;
  log: Logger;
  metrics?: Metrics | undefined;
}): Sessions {
  const { url: connectionString } = readSessionUrl(url);
  const addresses = serversIn(url);
  const said = new Map<string, number>(); // as many as there are pools and codes
  let max = 0;
  let path: string | undefined;
  let isWarned = false;
  const poolers = new Map<Server, { checking?: Promise<void> | undefined; knownUntilMs?: number }>(); // as many as there are servers

  const connectOnce = (name: string, server: Server = addresses[0]) => {
    const client = makeClient({
      connectionString,
      application_name: `tallyhook ${name}`,
      connectionTimeoutMillis: ONCE_TIMEOUT_MS,
      query_timeout: ONCE_TIMEOUT_MS,
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_DELAY_MS,
    });
    return Object.assign(client, { host: server.host, port: server.port });
  };
  const connect = (server: Server | undefined) => connectOnce('asking', server);
  const servers = createServers({ servers: addresses, connect, now: () => performance.now(), log });
  const silence = createSilence({ connect, look: servers.look });
  metrics?.gauge('tallyhook_database_sessions_max', () => max);
  metrics?.gauge('tallyhook_database_statements_unanswered', silence.size);

  const poolerOf = ({ server }: First) => {
    const pooler = poolers.get(server) ?? {};
    poolers.set(server, pooler);
    return pooler;
  };

  async function probe(first: First): Promise<void> {
    const second = connectOnce('probe', first.server);
    second.on('error', () => {});
    let isOurs: boolean;
    try {
      await second.connect();
      isOurs = !(await isShared(
        first,
        async <Row>(text: string) => (await second.query(text)).rows as Row[],
      ));
    } catch (error) {
      if (poolerOf(first).knownUntilMs !== undefined && !isOfServer(error)) return;
      throw isOfServer(error) ? handedAround() : starved(max); // statement pooling knows no transactions
    } finally {
      second.end().catch(() => {});
    }
    if (!isOurs) throw handedAround();
    poolerOf(first).knownUntilMs = performance.now() + POOLER_KNOWN_MS;
  }

  return {
    add: (connections) => (max += connections),
    max: () => max,
    path: () => path,
    note: (session) => {
      path ??= session.path;
      if (!session.isUnsafe || isWarned) return;
      isWarned = true;
      log.warn('fsync is off: a crash of the machine of Postgres loses events that were acknowledged');
    },
    checkPooler: async (first) => {
      const pooler = poolerOf(first);
      if (performance.now() < (pooler.knownUntilMs ?? 0)) return;
      pooler.checking ??= probe(first).finally(() => delete pooler.checking);
      await pooler.checking;
    },
    refused: (pool, { code, message }) => {
      const reason = SESSION_FAULTS.find((fault) => fault === code);
      const name = POOLS.find((known) => known === pool);
      if (reason !== undefined && name !== undefined) metrics?.sessionsRefused.inc({ pool: name, reason });
      const key = `${pool} ${code}`;
      const nowMs = performance.now();
      if (nowMs - (said.get(key) ?? Number.NEGATIVE_INFINITY) < SENTENCE_INTERVAL_MS) return;
      said.set(key, nowMs);
      log.error({ pool, code }, `a session with Postgres cannot be used: ${message}`);
    },
    failed: (error) => {
      const kind = refusalOf(error);
      if (kind !== undefined) metrics?.databaseRefusals.inc({ kind });
      if (kind === 'read_only') servers.doubt();
    },
    silence,
    servers,
  };
}

const handedAround = () =>
  new SessionError(
    'pooler_unfit',
    'the pooler hands it to several clients in turn, so that settings and prepared statements of one are met by another: ' +
      'use pool_mode=session, or a direct connection',
  );

export const starved = (max: number) =>
  new SessionError(
    'starved',
    'its first statement got no answer in time. Either the server hangs, or the pool of a pooler is smaller than the ' +
      `${max} sessions that this replica may open`,
  );
