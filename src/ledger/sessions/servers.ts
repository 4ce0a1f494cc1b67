// Of the servers that the URL names, the one that takes writes: the primary of a cluster. All are asked at once when it is not known,
// again when something says that it is another one by now, and now and then: a former primary that nobody has told takes writes as
// before. With one server there is nothing to ask.

import type { Client } from 'pg';
import type { Logger } from 'pino';
import { codeOf } from './sql-errors.ts';

export type Server = Readonly<Pick<Client, 'host' | 'port'>>;

export type Servers = {
  /** For the next connection. Where none takes writes, one that answers: operators may read there. Never rejects. */
  readonly primary: () => Promise<Server>;
  /** The primary could not be reached, or takes no writes: it is looked for again before the next connection. */
  readonly doubt: () => void;
  /** Asks now, while commits have no answer: another server may have become the primary. Does nothing with one server. */
  readonly look: () => Promise<void>;
  /** A connection is about to be used: asks beside it, if the last answers are old. */
  readonly used: () => void;
  /** `end` is called when another server is found to be the primary. @returns what to call when the connection has ended */
  readonly connected: (server: Server, end: () => void) => () => void;
};

/** How long the answers hold. All pools look again at once when a primary goes. */
const HOLDS_MS = 500;
/** With replication that is not synchronous, what a former primary acknowledges in this time is lost. Each look is a session at each server. */
const LOOK_EVERY_MS = 5_000;

/** What a server says of itself. Null where it keeps that to itself, as a managed one may. */
type Found = {
  readonly server: Server;
  readonly isWritable: boolean;
  readonly system: string | null;
  /** Each promotion begins a higher one. */
  readonly timeline: number | null;
};

/** @param options.connect a client that gives up soon */
export function createServers(options: {
  readonly servers: readonly [Server, ...Server[]];
  readonly connect: (server: Server) => Client;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly log: Logger;
}): Servers {
  const { servers, connect, now, log } = options;
  const connections = new Set<{ readonly server: Server; readonly end: () => void }>();
  let primary: Found | undefined;
  let isDoubted = true;
  let looked: { readonly untilMs: number; readonly answers: Promise<readonly Found[]> } | undefined;
  let turn = 0;
  let lookAtMs = 0;

  function askAll(): Promise<readonly Found[]> {
    if (looked !== undefined && now() < looked.untilMs) return looked.answers;
    const answers = Promise.all(servers.map((server) => ask(connect(server), server))).then((all) => {
      looked = { untilMs: now() + HOLDS_MS, answers };
      lookAtMs = now() + LOOK_EVERY_MS;
      return all.filter((found) => found !== undefined);
    });
    looked = { untilMs: Number.POSITIVE_INFINITY, answers };
    return answers;
  }

  /** Where no server takes writes that may: one that reads, or else one that is silent, whose error says why. */
  async function look(): Promise<Server> {
    const answers = await askAll();
    const writable = answers.filter((found) => found.isWritable);
    const next = writable
      .filter((found) => found.server === primary?.server || !isOlder(found, primary))
      .reduce<Found | undefined>(
        (best, found) => (best === undefined || isOlder(best, found) ? found : best),
        writable.find(({ server }) => server === primary?.server),
      );
    if (next !== undefined) {
      isDoubted = false;
      moveTo(next);
      return next.server;
    }
    const silent = servers.filter((server) => !answers.some((found) => found.server === server));
    return (
      answers.find(({ isWritable }) => !isWritable)?.server ?? silent[turn++ % silent.length] ?? servers[0]
    );
  }

  function moveTo(next: Found): void {
    const former = primary;
    primary = next;
    if (former?.server === next.server) return;
    log.info({ ...next.server, timeline: next.timeline }, 'this server of Postgres takes writes');
    // The former one may still take writes, until it has noticed: what it commits then is lost, or hangs.
    for (const { server, end } of connections) if (server !== next.server) end();
  }

  return {
    primary: async () => {
      if (servers.length === 1) return servers[0];
      return isDoubted || primary === undefined ? look() : primary.server;
    },
    doubt: () => (isDoubted = true),
    look: async () => {
      if (servers.length > 1) await look();
    },
    used: () => {
      if (servers.length === 1 || now() < lookAtMs) return;
      lookAtMs = Number.POSITIVE_INFINITY; // until there are answers
      void look();
    },
    connected: (server, end) => {
      const connection = { server, end };
      connections.add(connection);
      return () => void connections.delete(connection);
    },
  };
}

/** Of one cluster. Nothing is older than what is not known. */
const isOlder = (one: Found, other: Found | undefined): boolean =>
  one.system !== null &&
  one.system === other?.system &&
  one.timeline !== null &&
  other.timeline !== null &&
  one.timeline < other.timeline;

const READ = `select not current_setting('transaction_read_only')::boolean as "isWritable"`;
/** Each function may be revoked from us. */
const READ_SYSTEM = 'select system_identifier::text as value from pg_control_system()';
const READ_TIMELINE = `select 'x' || left(pg_walfile_name(pg_current_wal_lsn()), 8) as value`;

const NOT_PERMITTED = '42501';

/** Undefined if it does not answer it all in time. */
async function ask(client: Client, server: Server): Promise<Found | undefined> {
  client.on('error', () => {});
  const readIfAllowed = async (text: string) => {
    try {
      const { rows } = await client.query<{ value: string }>(text);
      return rows[0]?.value ?? null;
    } catch (error) {
      if (codeOf(error) === NOT_PERMITTED) return null;
      throw error;
    }
  };
  try {
    await client.connect();
    const { rows } = await client.query<{ isWritable: boolean }>(READ);
    const isWritable = rows[0]?.isWritable === true;
    if (!isWritable) return { server, isWritable, system: null, timeline: null };
    const system = await readIfAllowed(READ_SYSTEM);
    const timeline = await readIfAllowed(READ_TIMELINE);
    return { server, isWritable, system, timeline: timeline === null ? null : Number(`0${timeline}`) };
  } catch {
    return undefined;
  } finally {
    client.end().catch(() => {});
  }
}
