// Makes one replica at a time lead the relay, and one the watch. The lease is a row in Postgres that expires by the database's clock.
// Its holder also checks its own monotonic clock, read before it asked: once the lease may have expired by that clock, it stops
// (R29). So a replica that was frozen or cut off knows without a query that it no longer leads.

import type { Logger } from 'pino';
import { describeError } from '../../base/errors.ts';
import type { DatabaseConnection, Statement } from '../sessions/database.ts';

export type Lease = {
  readonly holder: string;
  /** Whether this replica leads at this moment. Ask before each publish (R30): it costs one reading of the clock. */
  readonly isLeading: () => boolean;
  /** Changes when another replica has led in between (R31). */
  readonly epoch: () => string | undefined;
  /** One attempt to take or renew the lease. Returns whether this replica leads now. Throws the database's errors. */
  readonly attempt: () => Promise<boolean>;
  /** Attempts until `release`, three times a lease; at once after an attempt that took longer than that. */
  readonly start: () => void;
  /** Stops attempting and gives the lease up if it is ours. Safe to call twice or before start. */
  readonly release: () => Promise<void>;
};

/** By the name of its row: what its holder leads. The watch has a lease of its own, since without the broker nobody leads the relay. */
const LEADS = { outbox: 'relay', watch: 'watch' } as const;

/** A lease outlives two attempts that fail at once. */
const ATTEMPTS_PER_LEASE = 3;

/**
 * Time-outs of the lease's own connection. Postgres gives up first.
 *
 * An attempt on the open connection takes half a lease at most. After an error the connection is not used again, so the next
 * attempt has to connect, which takes half a lease at most, too. So a lease outlives one attempt that is too slow, if the
 * next connection is made in time, and no attempt takes longer than a lease.
 */
export function leaseTimeouts(leaseMs: number): {
  statementTimeoutMs: number;
  lockTimeoutMs: number;
  queryTimeoutMs: number;
  connectTimeoutMs: number;
} {
  const statementTimeoutMs = Math.round(leaseMs * 0.4);
  const halfMs = Math.round(leaseMs * 0.5);
  return {
    statementTimeoutMs,
    lockTimeoutMs: statementTimeoutMs,
    queryTimeoutMs: halfMs,
    connectTimeoutMs: halfMs,
  };
}

/**
 * One statement, so that the row's lock decides between two replicas that ask at once. A server that was promoted may lack the last
 * takings, so for as long as a lease lasts, only who leads renews it there, and takes it with a new epoch after that (R47). `$4`: whether the replica leads by
 * its own clock. `since` stays while the lease is renewed in time, and
 * is null after it was given up: so a lease that ran out leaves in `lapsed_at` that nobody led from then until `since`.
 */
const TAKE: Statement = {
  name: 'lease-take',
  text: `
insert into relay_lease as l (name, holder, epoch, expires_at, since)
values ($1, $2::uuid, 1, clock_timestamp() + make_interval(secs => $3::float8), clock_timestamp())
on conflict (name) do update set
  holder = excluded.holder,
  epoch = l.epoch + (l.holder <> excluded.holder
    or coalesce(not $4 and l.expires_at <= l.promoted_at + make_interval(secs => $3::float8), false))::int,
  expires_at = excluded.expires_at,
  since = case when l.expires_at < excluded.since then excluded.since else coalesce(l.since, excluded.since) end,
  lapsed_at = case when l.expires_at >= excluded.since then l.lapsed_at when l.since is not null then l.expires_at end
where (l.expires_at < clock_timestamp() or l.holder = excluded.holder)
  and ($4 and l.expires_at >= clock_timestamp()
    or coalesce(l.promoted_at < clock_timestamp() - make_interval(secs => $3::float8), true))
returning epoch`,
};

const RELEASE: Statement = {
  name: 'lease-release',
  text: `
update relay_lease set expires_at = clock_timestamp(), since = null where name = $1 and holder = $2::uuid`,
};

export function createLease(options: {
  name: keyof typeof LEADS;
  /** An attempt must not wait long for another query, or the lease could be lost. */
  connection: Pick<DatabaseConnection, 'execute'>;
  holder: string;
  leaseMs: number;
  /** Monotonic milliseconds. */
  now: () => number;
  log: Logger;
  /** While false, this replica gives the lease up and leaves it to others. */
  mayLead: () => boolean;
  /** Called when the lease was taken. */
  onTaken?: () => void;
}): Lease {
  const { name, connection, holder, leaseMs, now, log, mayLead, onTaken } = options;
  const what = LEADS[name];
  let validUntilMs = Number.NEGATIVE_INFINITY;
  let epoch: string | undefined;
  let timer: NodeJS.Timeout | undefined;
  let attempting: Promise<void> = Promise.resolve();
  let released = false;

  const isLeading = () => now() < validUntilMs;

  async function attempt(): Promise<boolean> {
    const askedMs = now();
    const wasLeading = isLeading();
    const rows = await connection.execute<{ epoch: string }>(TAKE, [
      name,
      holder,
      leaseMs / 1_000,
      wasLeading,
    ]);
    validUntilMs = rows.length === 1 && !released ? askedMs + leaseMs : Number.NEGATIVE_INFINITY;
    epoch = rows[0]?.epoch ?? epoch;
    if (isLeading() && !wasLeading) {
      log.info({ epoch: rows[0]?.epoch }, `this replica leads the ${what}`);
      onTaken?.();
    }
    if (wasLeading && !isLeading()) log.warn(`the ${what} lease was lost`);
    return isLeading();
  }

  async function giveUp(): Promise<void> {
    validUntilMs = Number.NEGATIVE_INFINITY;
    await connection.execute(RELEASE, [name, holder]);
  }

  async function attemptAndLog(): Promise<void> {
    const canLead = mayLead();
    if (!canLead && !isLeading()) return;
    if (!canLead) log.warn(`the ${what} lease is given up: another replica may reach the broker`);
    try {
      await (canLead ? attempt() : giveUp());
    } catch (error) {
      const wanted = canLead ? 'renewed' : 'given up, and runs out by itself';
      log.warn({ err: describeError(error) }, `the ${what} lease could not be ${wanted}`);
    }
  }

  function run(): void {
    const startedMs = now();
    attempting = attemptAndLog().finally(() => {
      if (released) return;
      timer = setTimeout(run, Math.max(0, startedMs + leaseMs / ATTEMPTS_PER_LEASE - now()));
    });
  }

  return {
    holder,
    isLeading,
    epoch: () => epoch,
    attempt,
    start: run,
    release: async () => {
      released = true;
      clearTimeout(timer);
      await attempting;
      await giveUp();
    },
  };
}
