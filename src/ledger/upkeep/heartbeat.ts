// Each replica says every ten seconds that it runs, which version it is, and what it alone knows: its signs. It has a connection of
// its own with short time-outs, so that no delivery ever waits for it. A heartbeat that fails is a line of the log. A replica that stops takes its row away;
// one that was killed has it until upkeep deletes it (retention.ts).

import { hostname } from 'node:os';
import type { Config } from '../../config.ts';
import { describeError } from '../../base/errors.ts';
import type { Parts } from '../../base/parts.ts';
import { version } from '../../base/version.ts';
import { connectDatabase, type DatabaseConnection, type Statement } from '../sessions/database.ts';

const INTERVAL_MS = 10_000;
/** Three heartbeats: one may fail, and the next one may be slow. */
export const LATE_AFTER_S = 30;
/** A heartbeat takes a millisecond. At shutdown the service waits for one at most, so the times are short. */
const TIMEOUTS = {
  connectTimeoutMs: 1_000,
  lockTimeoutMs: 500,
  statementTimeoutMs: 1_000,
  queryTimeoutMs: 1_500,
};
/** The longest name of a host in the DNS. */
const HOST_MAX_LENGTH = 253;

/** The times are the database's, so that replicas on machines with different clocks compare. */
const BEAT: Statement = {
  name: 'replica-beat',
  text: `
insert into replicas (id, version, host, started_at, seen_at, signs)
values ($1::uuid, $2, $3, clock_timestamp() - make_interval(secs => $4::float8), clock_timestamp(), $5::jsonb)
on conflict (id) do update set seen_at = excluded.seen_at, signs = excluded.signs`,
};

const LEAVE: Statement = { name: 'replica-leave', text: 'delete from replicas where id = $1::uuid' };

/** Of each sign: the seconds since it was last so. What was never so is left out. */
export type Signs = Readonly<Record<string, number>>;

export type Heartbeat = { readonly start: () => void };

type HeartbeatParts = Pick<Parts, 'replicaId' | 'log' | 'now'> & {
  readonly signs: () => Signs;
  readonly intervalMs?: number | undefined;
};

/** Stops with the service, and takes the row away if there is time left for it. `connection`: for what takes a millisecond, too. */
export function composeHeartbeat(
  { database: { url } }: Config,
  parts: HeartbeatParts & Pick<Parts, 'sessions' | 'identity' | 'started' | 'graceMs'>,
): Heartbeat & { readonly connection: DatabaseConnection } {
  const { log, sessions, identity, started, graceMs } = parts;
  // Verified: a promotion is noted before the watch's lease is taken (R47).
  const connection = connectDatabase({
    ...TIMEOUTS,
    url,
    name: 'replica',
    connections: 1,
    identity,
    sessions,
    log,
  });
  started.defer(connection.close);
  const { start, end, leave } = createHeartbeat(connection, parts);
  started.defer(async () => {
    await end();
    if (graceMs() > 0) await leave();
  });
  return { start, connection };
}

/** `end`: begins no more, and resolves when none is under way. Neither it nor `leave` rejects. */
export function createHeartbeat(
  { execute }: Pick<DatabaseConnection, 'execute'>,
  { replicaId, log, now, signs, intervalMs = INTERVAL_MS }: HeartbeatParts,
): Heartbeat & { readonly end: () => Promise<void>; readonly leave: () => Promise<void> } {
  const host = hostname().slice(0, HOST_MAX_LENGTH);
  const bornMs = now();
  let timer: NodeJS.Timeout | undefined;
  let isEnded = false;
  let isKnown = false;
  let beating = Promise.resolve();

  async function beat(): Promise<void> {
    try {
      await execute(BEAT, [replicaId, version, host, (now() - bornMs) / 1_000, JSON.stringify(signs())]);
      isKnown = true;
    } catch (error) {
      log.warn({ err: describeError(error) }, 'the heartbeat of this replica could not be written');
    }
    if (!isEnded) timer = setTimeout(start, intervalMs);
  }

  function start(): void {
    beating = beat();
  }

  async function leave(): Promise<void> {
    if (!isKnown) return;
    try {
      await execute(LEAVE, [replicaId]);
    } catch (error) {
      log.warn({ err: describeError(error) }, 'the row of this replica stays until upkeep deletes it');
    }
  }

  return {
    start,
    end: () => {
      isEnded = true;
      clearTimeout(timer);
      return beating;
    },
    leave,
  };
}
