// The metrics for Prometheus, on a registry of their own: two services in one process do not share numbers.
// Labels come from closed sets (configured sources, outcomes, results), so their number is bounded.

import {
  Counter,
  collectDefaultMetrics,
  Gauge,
  Histogram,
  type HistogramConfiguration,
  Registry,
} from 'prom-client';
import type { DeliveryOutcome, PublicationResult } from '../ledger/index.ts';
import { UNKNOWN_SOURCE } from './text/source-name.ts';

export type Metrics = ReturnType<typeof createMetrics>;

/** From a millisecond to the sender's limit of 10 s. */
const ANSWER_BUCKETS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

const OUTCOMES: readonly (DeliveryOutcome | 'unavailable')[] = [
  'accepted',
  'duplicate',
  'conflict',
  'quarantined',
  'malformed',
  'unauthorized',
  'refused',
  'unavailable',
];
const PUBLICATION_RESULTS: readonly PublicationResult[] = ['confirmed', 'returned', 'nacked', 'failed'];
const BATCH_RESULTS = ['committed', 'failed'] as const;
const ALERT_RESULTS = ['sent', 'failed', 'given_up'] as const;
const HEARTBEAT_RESULTS = ['ok', 'failed'] as const;

/**
 * A counter that does not start at 0 hides its first event. So each exists from the first scrape, for each value of its labels.
 * @param options.sources the configured ones now. They may change.
 */
export function createMetrics(options: { version: string; sources: () => readonly string[] }) {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });

  const buildInfo = new Gauge({
    name: 'tallyhook_build_info',
    help: 'Always 1; the version is in the label.',
    labelNames: ['version', 'node'],
    registers,
  });
  const publications = new Counter({
    name: 'tallyhook_publications_total',
    help: 'Publish attempts by result.',
    labelNames: ['result'],
    registers,
  });
  for (const result of PUBLICATION_RESULTS) publications.inc({ result }, 0);
  const alertRequests = new Counter({
    name: 'tallyhook_alert_requests_total',
    help: 'Requests with a message of an incident by result; "given_up" is a message that was not taken for a day.',
    labelNames: ['result'],
    registers,
  });
  for (const result of ALERT_RESULTS) alertRequests.inc({ result }, 0);
  const heartbeatCalls = new Counter({
    name: 'tallyhook_heartbeat_calls_total',
    help: 'Calls of the heartbeat address by result. They stop while something is wrong.',
    labelNames: ['result'],
    registers,
  });
  for (const result of HEARTBEAT_RESULTS) heartbeatCalls.inc({ result }, 0);
  buildInfo.set({ version: options.version, node: process.version }, 1);

  return {
    registry,
    deliveries: new Counter({
      name: 'tallyhook_deliveries_total',
      help: 'Deliveries answered, by source and outcome; outcome "unavailable" was answered with 503.',
      labelNames: ['source', 'outcome'],
      registers,
      collect() {
        for (const source of [...options.sources(), UNKNOWN_SOURCE]) {
          for (const outcome of OUTCOMES) this.inc({ source, outcome }, 0);
        }
      },
    }),
    answerSeconds: startedAtZero('outcome', OUTCOMES, {
      name: 'tallyhook_answer_seconds',
      help: 'Time from the head of a delivery to its answer.',
      buckets: ANSWER_BUCKETS_S,
      registers,
    }),
    batchDeliveries: new Histogram({
      name: 'tallyhook_batch_deliveries',
      help: 'Deliveries in one write to the ledger.',
      buckets: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000],
      registers,
    }),
    batchSeconds: startedAtZero('result', BATCH_RESULTS, {
      name: 'tallyhook_batch_seconds',
      help: 'Time of one write to the ledger, commit included.',
      buckets: ANSWER_BUCKETS_S,
      registers,
    }),
    publications,
    alertRequests,
    heartbeatCalls,
    sessionsRefused: new Counter({
      name: 'tallyhook_database_sessions_refused_total',
      help: 'Sessions with Postgres that could not be used, by pool and reason.',
      labelNames: ['pool', 'reason'],
      registers,
    }),
    publicationSeconds: new Histogram({
      name: 'tallyhook_publication_seconds',
      help: 'Time from a publish to its confirm.',
      buckets: ANSWER_BUCKETS_S,
      registers,
    }),
    relayLagSeconds: new Histogram({
      name: 'tallyhook_relay_lag_seconds',
      help: 'Time from the acceptance of an event to its confirm by the broker.',
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 60, 300, 3_600],
      registers,
    }),
    /** A counter that is kept elsewhere and read at each scrape. */
    counted: (name: string, help: string, read: () => number) =>
      new Counter({
        name,
        help,
        registers,
        collect() {
          this.reset();
          this.inc(read());
        },
      }),
    connectionEnds: new Counter({
      name: 'tallyhook_connections_ended_total',
      help: 'Connections that we refused or closed, by face and reason.',
      labelNames: ['face', 'reason'],
      registers,
    }),
    unparsed: new Counter({
      name: 'tallyhook_unparsed_requests_total',
      help: 'Requests that were refused before any route, by face and kind: no HTTP/1.1, or a head that is not taken.',
      labelNames: ['face', 'kind'],
      registers,
    }),
    /** A gauge whose value is read at each scrape. */
    gauge: (name: string, help: string, read: () => number | Promise<number>) =>
      new Gauge({
        name,
        help,
        registers,
        async collect() {
          this.set(await read());
        },
      }),
  };
}

function startedAtZero<Label extends string>(
  label: Label,
  values: readonly string[],
  configuration: Omit<HistogramConfiguration<Label>, 'labelNames'>,
): Histogram<Label> {
  const histogram = new Histogram<Label>({ ...configuration, labelNames: [label] });
  for (const value of values) histogram.zero({ [label]: value } as Record<Label, string>);
  return histogram;
}
