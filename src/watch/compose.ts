// The watch's part of the composition: the signs of this replica, the lease, the looks, the gauge of what goes on, and messages.

import { setTimeout as sleep } from 'node:timers/promises';
import { cached } from '../base/collections/cached.ts';
import { describeError } from '../base/errors.ts';
import type { Parts } from '../base/parts.ts';
import { createLease, type DatabaseConnection, type Looks, type Signs } from '../ledger/index.ts';
import type { Config } from '../config.ts';
import { countOpen } from './incidents.ts';
import { composeMessages, type Messages } from './messages/compose.ts';
import { createSigns, type ReplicaStates } from './signs.ts';
import { type Configured, createWatch, type Watch } from './watch.ts';

/** Tests make all of it faster. */
export type WatchTiming = {
  readonly lookMs: number;
  /** Attempts on the lease share the heartbeat's connection, where each takes a millisecond: half a minute outlives several that fail. */
  readonly leaseMs: number;
  /** Of the replica's signs. */
  readonly sampleMs: number;
  readonly beatMs: number;
  readonly lateAfterS: number;
  /** Of all holds, and of times in thresholds. */
  readonly scale: number;
};

export const WATCH_TIMING: WatchTiming = {
  lookMs: 10_000,
  leaseMs: 30_000,
  sampleMs: 5_000,
  beatMs: 10_000,
  lateAfterS: 30,
  scale: 1,
};

const COUNT_CACHE_MS = 5_000;
/** How long a stop waits for a look, at most. */
const END_MS = 1_000;

export type Watching = Pick<Watch, 'conditions'> &
  Pick<Messages, 'sendTest' | 'reload'> & {
    readonly signs: () => Signs;
    /** Postgres was away just now, found out elsewhere. */
    readonly postgresWasAway: () => void;
    readonly start: () => void;
  };

/**
 * `beside`: the heartbeat's connection, for the lease. `connection`: for looks and messages.
 * @throws ConfigError for a broken ALERTS_FILE
 */
export async function composeWatch(
  config: Pick<Config, 'alerts'>,
  parts: Parts &
    ReplicaStates & {
      readonly connection: DatabaseConnection;
      readonly beside: Pick<DatabaseConnection, 'execute'>;
      readonly looks: () => Promise<Looks>;
      readonly sources: () => Configured;
      readonly timing?: WatchTiming | undefined;
    },
): Promise<Watching> {
  const { metrics, now, log, replicaId, started, beside, timing = WATCH_TIMING } = parts;
  const signs = createSigns({ metrics, states: parts, sampleMs: timing.sampleMs, now });
  const lease = createLease({
    name: 'watch',
    connection: beside,
    holder: replicaId,
    leaseMs: timing.leaseMs,
    now,
    log,
    mayLead: () => true,
  });
  const watch = createWatch({
    ...parts,
    lease,
    signs: signs.read,
    channels: () => messages.channels.current(),
    timing,
  });
  let sampling: NodeJS.Timeout | undefined;
  started.defer(async () => {
    clearInterval(sampling);
    // What a look writes is fenced, so one that is slow may be left to itself.
    await Promise.race([watch.end(), sleep(Math.min(END_MS, parts.graceMs()), undefined, { ref: false })]);
    if (parts.graceMs() === 0) return;
    await lease
      .release()
      .catch((error: unknown) =>
        log.warn(
          { err: describeError(error) },
          'the watch lease could not be given up: it expires by itself',
        ),
      );
  });
  const messages = await composeMessages(config, { ...parts, lease, isWell: watch.isWell });
  exposeOpen(parts);
  return {
    conditions: watch.conditions,
    sendTest: messages.sendTest,
    reload: messages.reload,
    signs: signs.read,
    postgresWasAway: () => signs.note('postgres-away'),
    start: () => {
      sampling = setInterval(() => void signs.sample(), timing.sampleMs);
      lease.start();
      watch.start();
      messages.start();
    },
  };
}

function exposeOpen({
  metrics,
  connection,
  now,
}: Pick<Parts, 'metrics' | 'now'> & { readonly connection: DatabaseConnection }): void {
  const count = cached({ maxAgeMs: COUNT_CACHE_MS, ask: () => countOpen(connection), now });
  const unknown = (['critical', 'warning'] as const).map((severity) => ({ severity, count: Number.NaN }));
  metrics.gauge('tallyhook_incidents_open', async () => {
    const open = await count().catch(() => unknown);
    return open.map(({ severity, count: value }) => ({ labels: { severity }, value }));
  });
}
