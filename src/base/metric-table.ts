// What metrics there are, by name. docs/observability.md has them as a table, which is made of this one.

import {
  ANSWERS,
  BATCH_RESULTS,
  CONNECTION_ENDS,
  FACES,
  POOLS,
  PUBLICATION_RESULTS,
  REFUSALS,
  SESSION_FAULTS,
  UNPARSED_KINDS,
} from './closed-sets.ts';

/** The values of each label. `sources` are the configured ones, which may change; `any` has also `unknown`, for all other names. */
export type Labels = Readonly<Record<string, readonly string[] | 'sources' | 'any'>>;

type Described = { readonly help: string; readonly labels?: Labels };

export const COUNTERS = {
  tallyhook_alert_requests_total: {
    help: 'Requests with a message of an incident by result; "given_up" is a message that was not taken for a day.',
    labels: { result: ['sent', 'failed', 'given_up'] },
  },
  tallyhook_deliveries_total: {
    help: 'Deliveries answered, by source and outcome; outcome "unavailable" was answered with 503.',
    labels: { source: 'any', outcome: ANSWERS },
  },
  tallyhook_overdue_secret_deliveries_total: {
    help: 'Deliveries that were signed by a secret after its "until" in SOURCES_FILE.',
    labels: { source: 'sources' },
  },
  tallyhook_heartbeat_calls_total: {
    help: 'Calls of the heartbeat address by result. They stop while something is wrong.',
    labels: { result: ['ok', 'failed'] },
  },
  tallyhook_publications_total: {
    help: 'Publish attempts by result.',
    labels: { result: PUBLICATION_RESULTS },
  },
  tallyhook_database_sessions_refused_total: {
    help: 'Sessions with Postgres that could not be used, by pool and reason.',
    labels: { pool: POOLS, reason: SESSION_FAULTS },
  },
  tallyhook_database_refusals_total: {
    help: 'Statements and sessions that Postgres refused, by kind.',
    labels: { kind: REFUSALS },
  },
  tallyhook_database_losses_total: {
    help: 'How often the database had lost deliveries that this replica had acknowledged.',
  },
  tallyhook_connections_ended_total: {
    help: 'Connections that we refused or closed, by face and reason.',
    labels: { face: FACES, reason: CONNECTION_ENDS },
  },
  tallyhook_unparsed_requests_total: {
    help: 'Requests that were refused before any route, by face and kind: no HTTP/1.1, or a head that is not taken.',
    labels: { face: FACES, kind: UNPARSED_KINDS },
  },
  tallyhook_log_lines_dropped_total: {
    help: 'Lines of the log that were dropped while nobody read it, or lost to an error of its output.',
  },
} as const satisfies Readonly<Record<string, Described>>;

/** From a millisecond to the sender's limit of 10 s. */
const ANSWER_BUCKETS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export const HISTOGRAMS = {
  tallyhook_answer_seconds: {
    help: 'Time from the head of a delivery to its answer.',
    labels: { outcome: ANSWERS },
    buckets: ANSWER_BUCKETS_S,
  },
  tallyhook_batch_deliveries: {
    help: 'Deliveries in one write to the ledger.',
    buckets: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000],
  },
  tallyhook_batch_seconds: {
    help: 'Time of one write to the ledger, commit included.',
    labels: { result: BATCH_RESULTS },
    buckets: ANSWER_BUCKETS_S,
  },
  tallyhook_publication_seconds: {
    help: 'Time from a publish to its confirm.',
    buckets: ANSWER_BUCKETS_S,
  },
  tallyhook_relay_lag_seconds: {
    help: 'Time from the acceptance of an event to its confirm by the broker.',
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 60, 300, 3_600],
  },
} satisfies Readonly<Record<string, Described & { readonly buckets: number[] }>>;

/** Read at each scrape. NaN: not known now. */
export const GAUGES = {
  tallyhook_build_info: { help: 'Always 1; the version is in the label.', labels: ['version', 'node'] },
  tallyhook_connections: { help: 'Open connections of senders.' },
  tallyhook_operator_connections: { help: "Open connections to the operators' port." },
  tallyhook_write_queue_deliveries: { help: 'Deliveries that wait for their commit.' },
  tallyhook_write_queue_bytes: { help: 'Bytes of deliveries that wait for their commit.' },
  tallyhook_unverified_body_bytes: { help: 'Held for bodies that are being read.' },
  tallyhook_database_connected: { help: '1 while Postgres takes deliveries.' },
  tallyhook_database_sessions_max: { help: 'Sessions with Postgres that this replica may open.' },
  tallyhook_database_statements_unanswered: {
    help: 'Statements that are overdue and still have no answer. Each keeps its connection.',
  },
  tallyhook_broker_connected: { help: '1 while publishing is possible.' },
  tallyhook_broker_blocked: { help: '1 while the broker accepts no more messages.' },
  tallyhook_relay_in_flight: { help: 'Events published and not confirmed yet.' },
  tallyhook_relay_lease_held: { help: '1 on the replica that leads.' },
  tallyhook_relay_lease_age_seconds: {
    help: 'How long the leading replica has led without a gap; NaN if the last one gave the lead up.',
  },
  tallyhook_outbox_pending: { help: 'Events still to be published, counted up to 100,000.' },
  tallyhook_outbox_oldest_seconds: { help: 'Age of the oldest event still to be published; 0 without one.' },
  tallyhook_outbox_returned: { help: 'Events that no queue received, counted up to 100,000.' },
  tallyhook_outbox_parked: { help: 'Events that the relay gave up on, counted up to 100,000.' },
  tallyhook_replay_entries: { help: "Replays' copies in the outbox, counted up to 100,000." },
  tallyhook_quarantine_deliveries: {
    help: 'Deliveries in quarantine that wait for an operator, counted up to 1,000.',
  },
  tallyhook_conflicts: {
    help: 'Deliveries of the last hour that contradict their event, counted up to 1,000.',
  },
  tallyhook_stuck_jobs: {
    help: 'Jobs of the last 7 days without an end an hour after they were first seen, counted up to 1,000.',
  },
  tallyhook_table_bytes: {
    help: 'Bytes of a table, its indexes and all its partitions.',
    labels: ['table'],
  },
  tallyhook_partitions_ahead: {
    help: 'Daily partitions of the table after that of today, without a gap; -1 if today has none.',
    labels: ['table'],
  },
  tallyhook_source_delivering_ratio: {
    help: 'In which share of the 24 hours up to the last verified delivery of the source it had verified ones.',
    labels: ['source'],
  },
  tallyhook_source_last_verified_seconds: {
    help: 'Since a delivery of the source was verified; NaN if none ever was.',
    labels: ['source'],
  },
  tallyhook_incidents_open: { help: 'Incidents that go on, by severity.', labels: ['severity'] },
} as const satisfies Readonly<Record<string, { readonly help: string; readonly labels?: readonly string[] }>>;
