// The relay's part of the composition: publisher, lease and relay, with their own database connections.

import type { Config } from '../config.ts';
import type { PoolName } from '../base/closed-sets.ts';
import { describeError } from '../base/errors.ts';
import {
  type Counts,
  connectDatabase,
  createLease,
  type DatabaseOptions,
  type Lease,
  leaseTimeouts,
} from '../ledger/index.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Parts } from '../base/parts.ts';
import { createHandOff, type HandOff } from './hand-off.ts';
import { createOutbox } from './outbox.ts';
import { createPublisher, type Publisher } from './publisher.ts';
import { type Backpressure, createRelay, type Relay } from './relay.ts';
import { topologyOf } from './topology.ts';

// Each pool has as many connections as it has users at one time.
/**
 * Only for the lease: a wait for another query could lose the lease. A second one is opened only while an attempt on the first is
 * overdue.
 */
const LEASE_CONNECTIONS = 2;
/** Each statement of a round waits for the one before. */
const ROUND_CONNECTIONS = 1;
/** The same for the results of confirmed events, which are a round's, too, but are committed otherwise. */
const RESULTS_CONNECTIONS = 1;
/** The write of copies' results, and what operators have decided. */
const BESIDE_CONNECTIONS = 2;
/** A leader that does not reach the broker for longer than this gives the lease up: another replica may reach it. */
const LEAD_WITHOUT_BROKER_MS = 5_000;

export type Relaying = {
  /** Whether this replica leads at this moment. */
  readonly isLeading: () => boolean;
  /** There may be something to publish in the outbox. */
  readonly nudge: () => void;
  /** For the intake's writes: their events go to the relay from memory. */
  readonly handOff: Pick<HandOff, 'write'>;
  /** While it is full, the intake's writes wait a little. */
  readonly backpressure: Backpressure;
  readonly brokerState: Publisher['state'];
  /** Whether the broker has this queue; undefined if it cannot say. */
  readonly hasQueue: Publisher['hasQueue'];
  readonly start: () => void;
};

/** At shutdown, in this order: stop publishing, give up the lease, disconnect. */
export function composeRelay(
  config: Config,
  {
    now,
    log,
    metrics,
    sessions,
    identity,
    replicaId,
    started,
    graceMs,
    counts,
  }: Parts & { readonly counts: Counts },
): Relaying {
  const publisher = createPublisher({
    ...config.broker,
    topology: topologyOf(config.broker),
    now,
    log,
    onReady: () => relay.nudge(),
  });
  started.defer(publisher.close);

  const connect = (
    own: { name: PoolName; connections: number } & Partial<Omit<DatabaseOptions, 'name' | 'sessions'>>,
  ) => {
    const connection = connectDatabase({ ...config.database, plans: 'once', ...own, sessions, log });
    started.defer(connection.close);
    return connection;
  };
  const lease = createLease({
    name: 'outbox',
    connection: connect({
      ...leaseTimeouts(config.relay.leaseMs),
      name: 'lease',
      connections: LEASE_CONNECTIONS,
      identity, // a promotion is noted before the lease is taken (R47)
    }),
    holder: replicaId,
    leaseMs: config.relay.leaseMs,
    now,
    log,
    mayLead: () => publisher.awayMs() < LEAD_WITHOUT_BROKER_MS,
    onTaken: () => relay.nudge(),
  });
  started.defer(() =>
    lease
      .release()
      .catch((error: unknown) =>
        log.warn({ err: describeError(error) }, 'the lease could not be given up: it expires by itself'),
      ),
  );

  const outbox = createOutbox(
    {
      rounds: connect({ name: 'relay', connections: ROUND_CONNECTIONS, idle: 'kept' }),
      results: connect({ name: 'results', connections: RESULTS_CONNECTIONS, writing: 'repeatable' }),
      beside: connect({ name: 'beside the relay', connections: BESIDE_CONNECTIONS }),
    },
    { relayId: replicaId },
  );
  const handOff = createHandOff();
  const relay = createRelay({
    outbox,
    handOff,
    lease,
    publisher,
    routingPrefix: config.broker.routingPrefix,
    limits: config.relay,
    now,
    random: Math.random,
    log,
    observe: (entry, publication) => {
      const { result, durationMs } = publication;
      metrics.publications.inc({ result });
      if (result === 'confirmed') metrics.publicationSeconds.observe({}, durationMs / 1_000);
      // A replayed event was accepted long ago: its age is not the relay's lag.
      if (entry.replay !== undefined) return;
      const lagMs = result === 'confirmed' ? Math.max(0, Date.now() - entry.recordedAt.getTime()) : null;
      counts.rollups.published(entry.source, result, lagMs);
      if (lagMs !== null) metrics.relayLagSeconds.observe({}, lagMs / 1_000);
    },
  });
  started.defer(() => relay.stop(graceMs()));

  exposeGauges({ metrics, relay, lease, publisher });
  return {
    isLeading: lease.isLeading,
    nudge: relay.nudge,
    handOff,
    backpressure: relay.backpressure,
    brokerState: publisher.state,
    hasQueue: publisher.hasQueue,
    start: () => {
      lease.start();
      relay.start();
    },
  };
}

function exposeGauges({
  metrics: { gauge },
  relay,
  lease,
  publisher,
}: {
  metrics: Metrics;
  relay: Relay;
  lease: Lease;
  publisher: Publisher;
}): void {
  gauge('tallyhook_relay_in_flight', relay.inFlight);
  gauge('tallyhook_relay_lease_held', () => Number(lease.isLeading()));
  gauge('tallyhook_broker_connected', () => Number(publisher.state().connected));
  gauge('tallyhook_broker_blocked', () => Number(publisher.state().blocked));
}
