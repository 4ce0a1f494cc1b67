// Sees to it that one relay leads at a time. The lease is a row in Postgres and runs on the database's clock;
// a holder trusts it only for as long as its own monotonic clock, started before it asked, says that it can
// still be valid. So a frozen or cut-off holder knows that it lost it, without asking anyone.

import type { Logger } from 'pino';
import { describeError } from '../errors.ts';
import type { DatabaseConnection, Statement } from '../ledger/index.ts';

export type Lease = {
  readonly holder: string;
  /** Whether we may publish at this very moment. Ask before each publish: it costs a clock reading. */
  readonly isHeld: () => boolean;
  /** One attempt to take or renew it. Returns whether it is held now. Throws what the database throws. */
  readonly attempt: () => Promise<boolean>;
  /** Attempts for ever, three times a lease and at once after one that took longer, until `release`. */
  readonly start: () => void;
  /** Stops attempting and gives the lease up at once if we hold it. Safe to call twice or before start. */
  readonly release: () => Promise<void>;
};

const NAME = 'relay';

/** From the begin of one attempt to that of the next: a lease outlives two that fail at once. */
const ATTEMPTS_PER_LEASE = 3;

/**
 * Time-outs of the connection that serves the lease alone. Postgres gives up first.
 *
 * An attempt takes half a lease at most on the connection that is there, so the rest of the lease is for another try. That
 * one has to connect anew, since a connection is not used again after an error: connecting takes half a lease at most, too.
 * So a lease outlives one attempt that fails for slowness when the next connection is made in time, and no attempt ever
 * takes longer than a lease.
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

/** One statement, so that the row's lock decides between two that ask at once. */
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
  /** For this lease alone, of one connection and with `leaseTimeouts`: whatever it waited for could cost the lease. */
  connection: Pick<DatabaseConnection, 'execute'>;
  holder: string;
  leaseMs: number;
  /** Monotonic milliseconds. */
  now: () => number;
  log: Logger;
  /** Whether leading would be of use. While it is not, the lease is given up and left to others. */
  mayLead: () => boolean;
  /** Called when the lease was taken, so that the relay need not wait for its next poll. */
  onTaken: () => void;
}): Lease {
  const { connection, holder, leaseMs, now, log, mayLead, onTaken } = options;
  let heldUntilMs = Number.NEGATIVE_INFINITY;
  let timer: NodeJS.Timeout | undefined;
  let attempting: Promise<void> = Promise.resolve();
  let released = false;

  const isHeld = () => now() < heldUntilMs;

  async function attempt(): Promise<boolean> {
    const askedMs = now();
    const wasHeld = isHeld();
    const rows = await connection.execute<{ epoch: string }>(TAKE, [NAME, holder, leaseMs / 1_000]);
    heldUntilMs = rows.length === 1 && !released ? askedMs + leaseMs : Number.NEGATIVE_INFINITY;
    if (isHeld() && !wasHeld) {
      log.info({ epoch: rows[0]?.epoch }, 'this replica leads the relay');
      onTaken();
    }
    if (wasHeld && !isHeld()) log.warn('the relay lease was lost');
    return isHeld();
  }

  async function giveUp(): Promise<void> {
    heldUntilMs = Number.NEGATIVE_INFINITY;
    await connection.execute(RELEASE, [NAME, holder]);
  }

  async function attemptAndLog(): Promise<void> {
    const isLeading = mayLead();
    if (!isLeading && !isHeld()) return;
    if (!isLeading) log.warn('the relay lease is given up: another replica may reach the broker');
    try {
      await (isLeading ? attempt() : giveUp());
    } catch (error) {
      const what = isLeading ? 'renewed' : 'given up, and runs out by itself';
      log.warn({ err: describeError(error) }, `the relay lease could not be ${what}`);
    }
  }

  function run(): void {
    const beganMs = now();
    attempting = attemptAndLog().finally(() => {
      if (released) return;
      timer = setTimeout(run, Math.max(0, beganMs + leaseMs / ATTEMPTS_PER_LEASE - now()));
    });
  }

  return {
    holder,
    isHeld,
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
