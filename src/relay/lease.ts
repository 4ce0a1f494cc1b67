// Makes one relay lead at a time. The lease is a row in Postgres that expires by the database's clock. Its holder also checks its
// own monotonic clock, read before it asked: once the lease may have expired by that clock, it stops (R29). So a replica that was
// frozen or cut off knows without a query that it no longer leads.

import type { Logger } from 'pino';
import { describeError } from '../base/errors.ts';
import type { DatabaseConnection, Statement } from '../ledger/index.ts';

export type Lease = {
  readonly holder: string;
  /** Whether this replica may publish at this moment. Ask before each publish (R30): it costs one reading of the clock. */
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

const NAME = 'outbox';

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

/** One statement, so that the row's lock decides between two replicas that ask at once. */
const TAKE: Statement = {
  name: 'lease-take',
  text: `
insert into relay_lease as l (name, holder, epoch, expires_at)
values ($1, $2::uuid, 1, clock_timestamp() + make_interval(secs => $3::float8))
on conflict (name) do update set
  holder = excluded.holder,
  epoch = l.epoch + (l.holder <> excluded.holder)::int,
  expires_at = excluded.expires_at
where l.holder = excluded.holder or l.expires_at < clock_timestamp()
returning epoch`,
};

const RELEASE: Statement = {
  name: 'lease-release',
  text: 'update relay_lease set expires_at = clock_timestamp() where name = $1 and holder = $2::uuid',
};

export function createLease(options: {
  /** Used for nothing else, and made with `leaseTimeouts`: a wait for another query could lose the lease. */
  connection: Pick<DatabaseConnection, 'execute'>;
  holder: string;
  leaseMs: number;
  /** Monotonic milliseconds. */
  now: () => number;
  log: Logger;
  /** While false, this replica gives the lease up and leaves it to others. */
  mayLead: () => boolean;
  /** Called when the lease was taken, so that the relay does not wait for its next poll. */
  onTaken: () => void;
}): Lease {
  const { connection, holder, leaseMs, now, log, mayLead, onTaken } = options;
  let validUntilMs = Number.NEGATIVE_INFINITY;
  let epoch: string | undefined;
  let timer: NodeJS.Timeout | undefined;
  let attempting: Promise<void> = Promise.resolve();
  let released = false;

  const isLeading = () => now() < validUntilMs;

  async function attempt(): Promise<boolean> {
    const askedMs = now();
    const wasLeading = isLeading();
    const rows = await connection.execute<{ epoch: string }>(TAKE, [NAME, holder, leaseMs / 1_000]);
    validUntilMs = rows.length === 1 && !released ? askedMs + leaseMs : Number.NEGATIVE_INFINITY;
    epoch = rows[0]?.epoch ?? epoch;
    if (isLeading() && !wasLeading) {
      log.info({ epoch: rows[0]?.epoch }, 'this replica leads the relay');
      onTaken();
    }
    if (wasLeading && !isLeading()) log.warn('the relay lease was lost');
    return isLeading();
  }

  async function giveUp(): Promise<void> {
    validUntilMs = Number.NEGATIVE_INFINITY;
    await connection.execute(RELEASE, [NAME, holder]);
  }

  async function attemptAndLog(): Promise<void> {
    const canLead = mayLead();
    if (!canLead && !isLeading()) return;
    if (!canLead) log.warn('the relay lease is given up: another replica may reach the broker');
    try {
      await (canLead ? attempt() : giveUp());
    } catch (error) {
      const what = canLead ? 'renewed' : 'given up, and runs out by itself';
      log.warn({ err: describeError(error) }, `the relay lease could not be ${what}`);
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
