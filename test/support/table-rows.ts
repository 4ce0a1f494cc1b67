// Rows as the API gives them, for the command line's tables: usual ones, and those that are hard to show.

import type { Answers, Items } from '../../src/operators/client/index.ts';

type StoryItem = Answers['story']['items'][number];
type Stats = Answers['stats'];

export const NOW = '2026-11-21T19:20:00.000000Z';
const at = (clock: string) => `2026-11-21T${clock}Z`;
const uuid = (last: string) => `01a1ff88-c29b-7e93-a060-067e8625${last}`;

/** As many bytes as a job's id may have; a name of East Asian letters and a picture; a source with a name of its own. */
export const LONG_JOB = `job_${'0123456789'.repeat(12)}_end`;
const WIDE_JOB = '映画の変換🎬第一回の試験-00042';
const LONG_SOURCE = 'studio-europe-central-2';
export const LONG_REASON =
  'cost_micros must be a whole number from -9007199254740991 to 9007199254740991; it is a string; input_format is missing; ' +
  'completed_at must be a date and time with a time zone, as in 2026-01-31T12:00:00Z';

const delivery = (fields: Partial<Items['deliveries']>): Items['deliveries'] => ({
  id: uuid('acca'),
  received_at: at('19:15:15.254123'),
  source: 'default',
  outcome: 'accepted',
  http_status: 202,
  reason: null,
  job_id: 'job_7f3a',
  status: 'completed',
  progress_percentage: null,
  error_code: null,
  event_id: null,
  path: '/webhooks',
  remote_address: '127.0.0.1',
  secret_fingerprint: '0cbf6f904fc0',
  body_bytes: 312,
  body_kept: true,
  released_at: null,
  ...fields,
});

const nobody = { job_id: null, status: null, body_bytes: 0, body_kept: false } as const;
export const quarantined = [
  delivery({ outcome: 'quarantined', reason: 'cost_cents is missing', id: uuid('7b47') }),
  delivery({ outcome: 'quarantined', status: 'paused', reason: 'unknown status', source: 'team-a' }),
  delivery({ outcome: 'quarantined', job_id: LONG_JOB, source: LONG_SOURCE, reason: LONG_REASON }),
  delivery({
    outcome: 'quarantined',
    job_id: WIDE_JOB,
    status: 'läuft noch 進行中',
    reason: 'unknown status',
  }),
];
export const discarded = [
  delivery({
    outcome: 'quarantined',
    status: 'paused',
    reason: 'unknown status',
    source: LONG_SOURCE,
    discarded_at: at('19:18:45.254123'),
    discarded_by: 'Ada’s laptop',
    discard_note: 'tests of team A',
  }),
  delivery({
    outcome: 'quarantined',
    job_id: LONG_JOB,
    reason: LONG_REASON,
    discarded_at: at('19:18:45.254123'),
    discarded_by: 'Ada’s laptop',
    discard_note: 'the sender has corrected it, and has sent all of these again',
  }),
];
/** What most ask for: nothing of it is hard to show. */
export const unauthorized = [
  delivery({ ...nobody, outcome: 'unauthorized', http_status: 401, source: 'team-a' }),
  delivery({ ...nobody, outcome: 'unauthorized', http_status: 401, source: 'unknown', id: uuid('52da') }),
];
export const deliveries = [
  delivery({ status: 'processing', progress_percentage: 45, id: uuid('0001') }),
  delivery({ outcome: 'duplicate', http_status: 200 }),
  delivery({ status: 'failed', error_code: 'INPUT_NOT_READABLE', source: 'team-a' }),
  delivery({
    ...nobody,
    outcome: 'unauthorized',
    http_status: 401,
    remote_address: '2001:db8:85a3::8a2e:370:7334',
  }),
  delivery({ ...nobody, outcome: 'malformed', http_status: 400, reason: 'the body is not JSON' }),
  ...quarantined,
];

export const jobs: Items['jobs'][] = [
  {
    source: 'default',
    job_id: 'job_7f3a',
    state: 'completed',
    highest_progress: 17,
    first_seen_at: at('19:15:15.254123'),
    last_seen_at: at('19:15:19.602'),
    completed_at: at('19:15:19.602'),
    failed_at: null,
    terminal_at: at('19:15:19.602'),
    duration_ms: 4_348,
  },
  {
    source: LONG_SOURCE,
    job_id: LONG_JOB,
    state: 'processing',
    highest_progress: 50,
    first_seen_at: at('19:15:15.329'),
    last_seen_at: at('19:15:15.329'),
    completed_at: null,
    failed_at: null,
    terminal_at: null,
    duration_ms: null,
  },
  {
    source: 'team-a',
    job_id: WIDE_JOB,
    state: 'failed',
    highest_progress: 30,
    first_seen_at: at('18:15:15.329'),
    last_seen_at: at('19:15:15.329'),
    completed_at: null,
    failed_at: at('19:15:15.329'),
    terminal_at: at('19:15:15.329'),
    duration_ms: 3_600_000,
  },
];

const event = (fields: Partial<Items['events']>): Items['events'] => ({
  id: 'default:job_7f3a:completed',
  sequence: '42',
  source: 'default',
  job_id: 'job_7f3a',
  status: 'completed',
  kind: 'completed',
  progress_percentage: null,
  error_code: null,
  late: false,
  occurred_at: at('19:15:19'),
  recorded_at: at('19:15:19.602'),
  delivery_id: uuid('acca'),
  repeats: 0,
  publication: 'done',
  ...fields,
});
export const events = [
  event({}),
  event({
    id: 'default:job_7f3a:processing:45',
    kind: 'progress',
    status: 'processing',
    late: true,
    repeats: 12,
  }),
  event({
    id: `team-a:${LONG_JOB}:failed`,
    kind: 'failed',
    error_code: 'INPUT_NOT_READABLE',
    publication: 'returned',
  }),
];

const publication = (fields: Partial<Items['publications']>): Items['publications'] => ({
  id: '7',
  published_at: at('19:15:19.632'),
  event_id: 'default:job_7f3a:completed',
  source: 'default',
  job_id: 'job_7f3a',
  attempt: 1,
  result: 'confirmed',
  detail: null,
  duration_ms: 8,
  relay_id: uuid('0002'),
  replay_id: null,
  queue: null,
  ...fields,
});
export const publications = [
  publication({}),
  publication({ event_id: `team-a:${LONG_JOB}:failed`, result: 'returned', detail: '312 NO_ROUTE' }),
  publication({
    attempt: 11,
    result: 'failed',
    detail: 'no confirm within 10 s: the connection was closed',
    duration_ms: 10_000,
  }),
  publication({ replay_id: uuid('4104'), queue: 'billing' }),
];

const entry = (fields: Partial<Items['outbox']>): Items['outbox'] => ({
  id: '87',
  event_id: 'team-a:job_c001:failed',
  source: 'team-a',
  job_id: 'job_c001',
  state: 'returned',
  attempts: 1,
  due_at: at('19:15:19.623'),
  recorded_at: at('19:15:19.623'),
  last_error: '312 NO_ROUTE',
  waits_behind: null,
  replay_id: null,
  queue: null,
  ...fields,
});
export const outbox = [
  entry({}),
  entry({
    id: '88',
    state: 'parked',
    attempts: 20,
    last_error: 'no confirm within 10 s: the connection was closed',
  }),
  entry({ id: '1234567', event_id: `default:${LONG_JOB}:processing:45`, state: 'pending', last_error: null }),
  entry({ id: '89', replay_id: uuid('4104'), queue: 'billing' }),
];

const group = {
  value: '312 NO_ROUTE',
  count: 10_000,
  count_is_exact: false,
  oldest_at: at('19:15:19.623'),
  newest_at: null,
};
export const outboxGroups = [
  { ...group, state: 'returned', copies: false },
  {
    ...group,
    value: 'no confirm within 10 s: the connection was closed',
    state: 'parked',
    count: 12,
    count_is_exact: true,
    newest_at: at('19:16:53.124'),
  },
  { ...group, value: null, state: 'pending', copies: true, count: 1, count_is_exact: true },
];
export const quarantineGroups = [group, { ...group, value: LONG_REASON }];

export const replays: Items['replays'][] = [
  {
    id: uuid('4104'),
    state: 'finished',
    paused_because: null,
    created_at: at('19:16:53.124'),
    created_by: 'Ada',
    note: 'billing lost its disk',
    queue: 'billing',
    rate_per_second: 10,
    counts: { matched: 12_042, queued: 12_042, confirmed: 12_036, returned: 1, failed: 2, skipped: 3 },
    matched_exactly: true,
    updated_at: at('19:16:59'),
    finished_at: at('19:16:59'),
  },
  {
    id: uuid('5efc'),
    state: 'paused',
    paused_because: 'there is no queue biling',
    created_at: at('19:16:53.124'),
    created_by: 'the nightly job of the data team',
    note: null,
    queue: null,
    rate_per_second: 100,
    counts: { matched: 2, queued: 0, confirmed: 0, returned: 0, failed: 0, skipped: 0 },
    matched_exactly: true,
    updated_at: at('19:16:59'),
    finished_at: null,
  },
];
export const skips = [
  { replay_id: uuid('4104'), event_id: 'team-a:job_c001:failed', reason: 'it is still to be published' },
  { replay_id: uuid('4104'), event_id: `team-a:${LONG_JOB}:failed`, reason: 'its body is no longer kept' },
];

const line = (
  action: string,
  subject: string,
  source: string | null,
  detail: Record<string, unknown> = {},
): Items['operator-log'] => ({
  id: '1',
  at: at('19:17:16.323'),
  actor: 'docs operator',
  role: 'operator',
  action,
  source,
  subject,
  detail,
  remote_address: '127.0.0.1',
});
export const operatorLog = [
  line('outbox.discard', 'default:job_c002:failed', 'default'),
  line('quarantine.release', uuid('7b47'), 'team-a', {
    result: 'still_quarantined',
    reason: 'unknown status',
  }),
  line('quarantine.discard', uuid('7b47'), 'team-a', { reason: 'unknown status', note: 'tests of team A' }),
  line('outbox.park', `${LONG_SOURCE}:${LONG_JOB}:failed`, LONG_SOURCE),
];

const step = { at: at('19:15:15.254'), after_ms: 63 };
export const story: StoryItem[] = [
  {
    ...step,
    after_ms: null,
    what: 'delivery',
    delivery: delivery({ status: 'processing', progress_percentage: 0 }),
  },
  { ...step, what: 'event', event: event({ repeats: 1 }) },
  { ...step, after_ms: 93_000, what: 'publication', publication: publication({}) },
  { ...step, what: 'delivery', delivery: delivery({ outcome: 'quarantined', reason: LONG_REASON }) },
  {
    ...step,
    what: 'event',
    event: {
      ...event({ id: 'default:job_7f3a:failed', kind: 'failed', error_code: 'INVALID_INPUT' }),
      error_message: 'the input file cannot be read: it ends after 1,024 of 10,485,760 bytes',
    },
  },
  {
    ...step,
    what: 'operator',
    operator: {
      action: 'quarantine.release',
      actor: 'docs operator',
      subject: uuid('7b47'),
      result: 'still_quarantined',
    },
  },
  {
    ...step,
    what: 'operator',
    operator: {
      action: 'quarantine.discard',
      actor: 'docs operator',
      subject: uuid('7b47'),
      note: 'tests of team A',
    },
  },
  { ...step, what: 'replay', replay: { ...(replays[0] as Items['replays']), duration_ms: 5_900 } },
  {
    ...step,
    what: 'replay_skip',
    skip: {
      replay_id: uuid('4104'),
      event_id: 'default:job_7f3a:failed',
      reason: 'its body is no longer kept',
    },
  },
  { ...step, what: 'waiting', entry: entry({ state: 'parked', attempts: 20 }) },
  {
    ...step,
    what: 'waiting',
    entry: entry({
      id: '88',
      state: 'pending',
      attempts: 0,
      last_error: null,
      waits_behind: { id: '87', event_id: 'team-a:job_c001:failed', state: 'parked' },
    }),
  },
  { ...step, what: 'waiting', entry: entry({ id: '89', state: 'pending', attempts: 0, last_error: null }) },
];

const source = (
  fields: Partial<Answers['sources']['items'][number]>,
): Answers['sources']['items'][number] => ({
  source: 'default',
  configured: true,
  last_delivery_at: at('19:18:47'),
  rates: { last_5m: 1_024.4, last_1h: 1.12, last_24h: 0.05 },
  secrets: [],
  drift: [],
  ...fields,
});
export const sources = [
  source({}),
  source({
    source: 'unknown',
    configured: false,
    last_delivery_at: null,
    rates: { last_5m: 0, last_1h: 0, last_24h: 0 },
  }),
  source({ source: LONG_SOURCE }),
];
export const secrets = [
  { of: 'default', fingerprint: 'ff01e7700e74', configured: true, last_matched_at: at('19:18:52.879') },
  { of: LONG_SOURCE, fingerprint: '8f9615666d38', configured: false, last_matched_at: null },
];
const seen = {
  first_seen_at: at('19:15:22.664'),
  last_seen_at: at('19:18:00'),
  sample_delivery_id: uuid('3459'),
};
export const drift = [
  {
    of: 'team-a',
    kind: 'field',
    name: 'codec',
    status: 'completed',
    value_type: 'string',
    count: 1,
    ...seen,
  },
  {
    of: 'team-a',
    kind: 'status',
    name: 'läuft noch 進行中',
    status: 'läuft noch 進行中',
    value_type: 'string',
    count: 12_345,
    ...seen,
  },
];
export const driftOfLongName = drift.map((row) => ({
  ...row,
  of: `studio-${'0123456789'.repeat(5)}-eu`,
  last_seen_at: at('00:00:30'),
}));
export const refused = [
  { of: 'team-a', address: '203.0.113.7', count: 800 },
  { of: LONG_SOURCE, address: '2001:db8:85a3::8a2e:370:7334', count: 1_234_567 },
];

const times = { p50: 8.05, p90: 20, p99: 66.4 };
export const stats: Stats['items'] = [
  {
    at: at('19:00:00'),
    source: 'default',
    deliveries: { accepted: 57, duplicate: 1, malformed: 1, quarantined: 1, unauthorized: 2 },
    answer_ms: times,
    publications: { returned: 1, confirmed: 56 },
    lag_ms: { p50: 28, p90: 60, p99: 112 },
  },
  {
    at: at('19:00:00'),
    source: LONG_SOURCE,
    deliveries: {
      accepted: 1_234_567,
      duplicate: 12_345,
      conflict: 1,
      quarantined: 12,
      malformed: 3,
      unauthorized: 99_999,
      refused: 7,
      unavailable: 1_000,
    },
    answer_ms: { p50: 61_000, p90: 61_000, p99: 3_600_000 },
    publications: { confirmed: 1_234_567, returned: 3, nacked: 2, failed: 1 },
    lag_ms: { p50: 61_000, p90: 61_000, p99: 3_600_000 },
  },
];
export const total: NonNullable<Stats['total']> = {
  from: at('18:20:00'),
  to: at('19:20:00'),
  deliveries: {
    accepted: 1_234_624,
    duplicate: 12_346,
    conflict: 1,
    quarantined: 13,
    malformed: 4,
    unauthorized: 100_001,
    refused: 7,
    unavailable: 1_000,
  },
  answer_ms: times,
  publications: { confirmed: 1_234_623, returned: 4, nacked: 2, failed: 1 },
  lag_ms: { p50: 28, p90: 60, p99: 112 },
};

export const tokens = [
  {
    id: 'tok_01a1ff88c29b7e93a0',
    name: 'Ada’s laptop in the office by the river',
    environment: 'live' as const,
    role: 'operator' as const,
    sources: ['team-a', LONG_SOURCE, 'team-c'],
    createdAt: new Date(NOW),
    createdBy: 'command line',
    expiresAt: new Date(NOW),
    lastUsedAt: new Date(NOW),
    revokedAt: new Date(NOW),
  },
];

const incident = (fields: Partial<Items['incidents']>): Items['incidents'] => ({
  id: uuid('0003'),
  condition: 'returned',
  subject: null,
  severity: 'critical',
  state: 'ended',
  summary: '1 event is returned.',
  began_at: at('19:05:00.123456'),
  ended_at: at('19:17:00'),
  events_waited: 1,
  decided_by: [],
  ...fields,
});
export const incidents = [
  incident({}),
  incident({
    condition: 'source-silent',
    subject: LONG_SOURCE,
    state: 'open',
    ended_at: null,
    events_waited: 0,
    summary: `The last verified delivery of ${LONG_SOURCE} came 2 hours ago.`,
  }),
  incident({
    condition: 'outbox-lag',
    began_at: at('02:12:11'),
    ended_at: at('04:52:11'),
    events_waited: 100_000,
    decided_by: ['Ada’s laptop', 'Grace'],
    summary: 'The oldest pending event is 5 minutes old.',
  }),
  incident({
    condition: 'quarantine',
    severity: 'warning',
    events_waited: 0,
    summary: '2 deliveries wait in quarantine.',
  }),
];
const condition = (
  name: string,
  fields: Partial<Answers['conditions']['items'][number]> = {},
): Answers['conditions']['items'][number] => ({
  name,
  subject: null,
  severity: 'warning',
  is_so: true,
  summary: '1 delivery waits in quarantine.',
  value: 1,
  ...fields,
});
export const conditions = [
  condition('quarantine'),
  condition('unauthorized-storm', {
    subject: LONG_SOURCE,
    summary: `204 of 210 deliveries of ${LONG_SOURCE} were unauthorized in 10 minutes.`,
  }),
];

const destination = (
  fields: Partial<Answers['destinations']['items'][number]>,
): Answers['destinations']['items'][number] => ({
  name: 'billing',
  what: 'queue',
  receives: [{ kind: 'completed', sources: null }],
  binding_keys: ['job.completed.*'],
  type: 'quorum',
  policy: null,
  messages: 0,
  max_length: null,
  overflow: null,
  consumers: 2,
  ...fields,
});

export const destinations = [
  destination({
    name: 'alarms',
    receives: [
      { kind: 'failed', sources: null },
      { kind: 'progress', sources: ['default', LONG_SOURCE] },
    ],
    type: 'classic',
    policy: 'short',
    messages: 1_000,
    max_length: 1_000,
    overflow: 'reject-publish',
    consumers: 0,
  }),
  destination({}),
  destination({
    name: 'archive',
    what: 'exchange',
    type: null,
    messages: null,
    consumers: null,
    receives: [],
  }),
];

export const replicas: Answers['replicas']['items'] = [
  {
    id: uuid('0001'),
    version: '0.2.0',
    host: 'tallyhook-6c9f7d8b5d-x2x7q.production.example',
    started_at: at('19:15:15.254123'),
    seen_at: at('19:19:55'),
    leads: true,
    is_late: false,
  },
  {
    id: uuid('0002'),
    version: '0.1.0',
    host: 'relay-2',
    started_at: at('18:15:15.254123'),
    seen_at: at('19:10:00'),
    leads: false,
    is_late: true,
  },
];

const size = (fields: Partial<Answers['sizes']['items'][number]>): Answers['sizes']['items'][number] => ({
  table: 'tokens',
  days: null,
  rows: 12,
  bytes: 65_536,
  index_bytes: 49_152,
  kept: 'while_needed',
  a_day: null,
  bytes_at_retention: null,
  ...fields,
});
export const sizes = [
  size({
    table: 'deliveries',
    days: 38,
    rows: 25_920_000,
    bytes: 35_433_480_192,
    index_bytes: 14_173_392_076,
    kept: 'retention',
    a_day: { rows: 864_000, bytes: 1_181_116_006 },
    bytes_at_retention: 36_614_596_186,
  }),
  size({
    table: 'events',
    rows: 104_857_600,
    bytes: 22_548_578_304,
    index_bytes: 9_663_676_416,
    kept: 'for_good',
    a_day: { rows: 777_600, bytes: 167_772_160 },
  }),
  ...[
    'jobs',
    'publication_batches',
    'publications',
    'operator_log',
    'rollups',
    'drift',
    'tokens',
    'sessions',
  ].map((table) => size({ table })),
];

const hit = (fields: Partial<Answers['search']['items'][number]>): Answers['search']['items'][number] => ({
  what: 'job',
  id: 'job_7f3a',
  source: 'default',
  state: 'completed',
  at: at('19:15:19.602'),
  ...fields,
});
export const found = [
  hit({}),
  hit({ what: 'event', id: `team-a:${LONG_JOB}:failed`, source: 'team-a', state: 'failed' }),
  hit({ what: 'delivery', id: uuid('acca'), state: 'quarantined' }),
  hit({ what: 'replay', id: uuid('4104'), source: null, state: 'paused' }),
  hit({ what: 'error_code', id: 'INPUT_NOT_READABLE', source: null, state: null }),
  hit({ what: 'source', id: LONG_SOURCE, source: LONG_SOURCE, state: null, at: null }),
  hit({ what: 'job_prefix', id: WIDE_JOB, source: LONG_SOURCE, state: 'processing' }),
  hit({ what: 'job_prefix', id: "-it's", state: 'processing' }),
];

export const differences: Answers['difference']['differences'] = [
  { path: '/cost_micros', event: '9007199254740991', delivery: '9007199254740990', cut: [] },
  { path: '/estimated_completion', event: '"2026-01-15T10:35:00Z"', delivery: null, cut: [] },
  {
    path: '/outputs/0/url',
    event: null,
    delivery: `"https://example.test/${'x'.repeat(60)}`,
    cut: ['delivery'],
  },
];
