// Of the servers that the URL names, the one that takes writes: the primary of a cluster. All are asked at once when it is not known,
// again when something says that it is another one by now, and now and then: a former primary that nobody has told takes writes as
// before. With one server there is nothing to ask.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from 'pg';
import type { Logger } from 'pino';
import { describeError } from '../../base/errors.ts';
import { codeOf, isOfServer } from './sql-errors.ts';

export type Server = Readonly<Pick<Client, 'host' | 'port'>>;

export type Servers = {
  /**
   * For the next connection. Where none takes writes, one that says why, or one that answers: operators may read there. Never rejects.
   */
  readonly primary: () => Promise<Server>;
  /** The primary could not be reached, or takes no writes: it is looked for again before the next connection. */
  readonly doubt: () => void;
  /** Asks now, while commits have no answer: another server may have become the primary. Does nothing with one server. */
  readonly look: () => Promise<void>;
  /** A connection is about to be used: asks beside it, if the last answers are old. */
  readonly used: () => void;
  /**
   * To be called before it connects. `end` is called when another server is found to be the primary.
   * @returns what to call when the connection has ended
   */
  readonly connecting: (server: Server, end: () => void) => () => void;
};

/** How long the answers hold. All pools look again at once when a primary goes. */
const HOLDS_MS = 500;
/** With replication that is not synchronous, what a former primary acknowledges in this time is lost. Each look is a session at each server. */
const LOOK_EVERY_MS = 5_000;
/** For all that a server is asked, with the connection. Shorter than a pool waits for one. */
const ASK_MS = 1_000;
/** Between two lines that no server takes writes. */
const SENTENCE_INTERVAL_MS = 10_000;

/** What a server says of itself. Null where it keeps that to itself, as a managed one may. */
type Found = {
  readonly server: Server;
  readonly isWritable: boolean;
  readonly system: string | null;
  /** Each promotion begins a higher one. */
  readonly timeline: number | null;
};
type Failed = { readonly server: Server; readonly error: unknown };
type Answer = Found | Failed;

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
  let looked: { readonly untilMs: number; readonly answers: Promise<readonly Answer[]> } | undefined;
  let turn = 0;
  let saidMs = Number.NEGATIVE_INFINITY;

  function askAll(): Promise<readonly Answer[]> {
    if (looked !== undefined && now() < looked.untilMs) return looked.answers;
    const answers = Promise.all(servers.map((server) => ask(connect(server), server))).then((all) => {
      looked = { untilMs: now() + HOLDS_MS, answers };
      return all;
    });
    looked = { untilMs: Number.POSITIVE_INFINITY, answers };
    return answers;
  }

  async function look(): Promise<Server> {
    const answers = await askAll();
    const next = choose(answers);
    if (next === undefined) return withoutPrimary(answers);
    isDoubted = false;
    if (next.server !== primary?.server)
      log.info({ ...next.server, timeline: next.timeline }, 'this server of Postgres takes writes');
    primary = next;
    // A former one may still take writes, until it has noticed: what it commits then is lost, or hangs.
    for (const { server, end } of connections) if (server !== next.server) end();
    return next.server;
  }

  /** The one with the latest timeline; of equal ones the present one, or else the first. */
  function choose(answers: readonly Answer[]): Found | undefined {
    const writable = answers.filter(
      (answer): answer is Found => !isFailed(answer) && answer.isWritable && refusalOf(answer) === undefined,
    );
    const best = writable.reduce<Found | undefined>(
      (first, found) => (first === undefined || isEarlier(first, found) ? found : first),
      writable.find(({ server }) => server === primary?.server),
    );
    // It answered nothing in time, and no connection has failed: it is only slow, unless there is a later one.
    const isSlow =
      !isDoubted && answers.some((answer) => isFailed(answer) && answer.server === primary?.server);
    return isSlow && primary !== undefined && best !== undefined && !isEarlier(primary, best)
      ? primary
      : best;
  }

  /** Why a server that takes writes is not used. What its own server has become, it has become. */
  function refusalOf(found: Found): string | undefined {
    if (primary === undefined || found.server === primary.server) return undefined;
    if (isEarlier(found, primary))
      return `its timeline ${found.timeline} is earlier than ${primary.timeline}`;
    const isOther = found.system !== null && primary.system !== null && found.system !== primary.system;
    return isOther ? 'it is of another cluster' : undefined;
  }

  /** One that says why it takes nothing comes before one that only reads, and that before one that cannot be reached. */
  function withoutPrimary(answers: readonly Answer[]): Server {
    if (now() - saidMs >= SENTENCE_INTERVAL_MS) {
      saidMs = now();
      log.warn({ servers: answers.map(reasonOf) }, 'no server of Postgres takes writes');
    }
    const failed = answers.filter(isFailed);
    const telling = failed.find(({ error }) => isOfServer(error) && !STARTING.test(codeOf(error)));
    const reading = answers.find((answer) => !isFailed(answer) && !answer.isWritable);
    return (telling ?? reading ?? failed[turn++ % failed.length])?.server ?? servers[0];
  }

  function reasonOf(answer: Answer): object {
    if (isFailed(answer)) return { ...answer.server, err: describeError(answer.error) };
    return { ...answer.server, because: answer.isWritable ? refusalOf(answer) : 'it only reads' };
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
      const heldUntilMs = looked?.untilMs ?? Number.NEGATIVE_INFINITY;
      if (servers.length > 1 && now() >= heldUntilMs + LOOK_EVERY_MS - HOLDS_MS) void look();
    },
    connecting: (server, end) => {
      const connection = { server, end };
      connections.add(connection);
      return () => void connections.delete(connection);
    },
  };
}

const isFailed = (answer: Answer): answer is Failed => 'error' in answer;

/** It starts or stops: it will say something else soon. */
const STARTING = /^57P/;

/** Of one cluster. Nothing is earlier than what is not known. */
const isEarlier = (one: Found, other: Found): boolean =>
  one.system !== null &&
  one.system === other.system &&
  one.timeline !== null &&
  other.timeline !== null &&
  one.timeline < other.timeline;

const READ = `select not current_setting('transaction_read_only')::boolean as "isWritable"`;
/** Each function may be revoked from us. */
const READ_SYSTEM = 'select system_identifier::text as value from pg_control_system()';
const READ_TIMELINE = `select 'x' || left(pg_walfile_name(pg_current_wal_lsn()), 8) as value`;
const NOT_PERMITTED = '42501';

async function ask(client: Client, server: Server): Promise<Answer> {
  client.on('error', () => {});
  const isOver = new AbortController();
  try {
    return await Promise.race([
      askIn(client, server),
      sleep(ASK_MS, undefined, { signal: isOver.signal }).then((): Failed => ({ server, error: TOO_LATE })),
    ]);
  } catch (error) {
    return { server, error };
  } finally {
    isOver.abort();
    client.end().catch(() => {});
  }
}

const TOO_LATE = new Error(`no answer within ${ASK_MS / 1_000} s`);

async function askIn(client: Client, server: Server): Promise<Found> {
  const readIfAllowed = async (text: string) => {
    try {
      const { rows } = await client.query<{ value: string }>(text);
      return rows[0]?.value ?? null;
    } catch (error) {
      if (codeOf(error) === NOT_PERMITTED) return null;
      throw error;
    }
  };
  await client.connect();
  const { rows } = await client.query<{ isWritable: boolean }>(READ);
  const isWritable = rows[0]?.isWritable === true;
  if (!isWritable) return { server, isWritable, system: null, timeline: null };
  const system = await readIfAllowed(READ_SYSTEM);
  const timeline = await readIfAllowed(READ_TIMELINE);
  return { server, isWritable, system, timeline: timeline === null ? null : Number(`0${timeline}`) };
}
