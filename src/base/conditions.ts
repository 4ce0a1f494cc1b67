// What an operator has to know of: by name, with the threshold, its reason, and how long it has to be so. The watch makes incidents of
// them; the alert rules, the runbook, the check and the pages use the same names. Prometheus' rule is `Tallyhook` and the name in
// CamelCase, the runbook's anchor is the name. Knows nothing of how any of it is found out.

/** `critical`: somebody should look now, also at night. `warning`: in working hours. */
export type Severity = 'warning' | 'critical';

export type Condition = {
  readonly severity: Severity;
  /** As the end of "it is so when". */
  readonly when: string;
  /** What it is compared with, in this unit. */
  readonly threshold: number;
  readonly unit: 'seconds' | 'days' | 'events' | 'deliveries' | 'jobs';
  /** It has to be so for this long before it is an incident. */
  readonly holdS: number;
  /** Why this threshold and this hold, in one sentence. */
  readonly reason: string;
  /** There is one for each source. */
  readonly ofSource?: true;
  /** Events wait meanwhile: an incident says how many. */
  readonly eventsWait?: true;
  /** Operators end it by their decisions: an incident says who. */
  readonly isDecided?: true;
};

const MINUTE_S = 60;
const HOUR_S = 60 * MINUTE_S;
const DAY_S = 24 * HOUR_S;

/** An incident ends after it was not so for this long: a condition that comes and goes is one incident. */
export const END_HOLD_S = 5 * MINUTE_S;

export const CONDITIONS = {
  'outbox-lag': {
    severity: 'critical',
    when: 'the oldest pending event is older than 5 minutes',
    threshold: 5 * MINUTE_S,
    unit: 'seconds',
    holdS: 0,
    reason:
      'An event is published within a second, and a new leader or a restart of the broker takes less than a minute.',
    eventsWait: true,
    isDecided: true,
  },
  'broker-away': {
    severity: 'critical',
    when: 'no replica could publish for 1 minute: none is connected to RabbitMQ, or it blocks all of them',
    threshold: MINUTE_S,
    unit: 'seconds',
    holdS: MINUTE_S,
    reason: 'A restart of RabbitMQ and the connecting after it take some seconds.',
    eventsWait: true,
  },
  'no-leader': {
    severity: 'critical',
    when: 'no replica had the lease of the relay for 1 minute, while one could reach RabbitMQ',
    threshold: MINUTE_S,
    unit: 'seconds',
    holdS: MINUTE_S,
    reason: 'Another replica takes a lease that ran out within seconds.',
    eventsWait: true,
  },
  'postgres-away': {
    severity: 'critical',
    when: 'Postgres took no deliveries for 1 minute',
    threshold: MINUTE_S,
    unit: 'seconds',
    holdS: MINUTE_S,
    reason: 'A restart or a failover takes less, and senders deliver again meanwhile.',
    eventsWait: true,
  },
  'disk-full': {
    severity: 'critical',
    when: 'Postgres refused to write for want of disk in the last 5 minutes, or RabbitMQ blocks for 5 minutes',
    threshold: 5 * MINUTE_S,
    unit: 'seconds',
    holdS: 0,
    reason:
      'Postgres refuses nothing before its disk is full; RabbitMQ blocks for a moment when memory is short, and for long when it is disk.',
    eventsWait: true,
  },
  'partitions-missing': {
    severity: 'critical',
    when: 'a table has partitions for fewer than 3 days ahead',
    threshold: 3,
    unit: 'days',
    holdS: 0,
    reason: 'They are made 7 days ahead each hour: 4 days of failures are behind it, and 3 are left.',
  },
  parked: {
    severity: 'critical',
    when: 'an event is parked for 5 minutes',
    threshold: 5 * MINUTE_S,
    unit: 'seconds',
    holdS: 5 * MINUTE_S,
    reason:
      'Later events of its job wait until an operator decides; whoever is at it already needs no alert.',
    eventsWait: true,
    isDecided: true,
  },
  returned: {
    severity: 'critical',
    when: 'an event is returned for 5 minutes',
    threshold: 5 * MINUTE_S,
    unit: 'seconds',
    holdS: 5 * MINUTE_S,
    reason: 'No queue takes it, and a subscriber that is being set up binds its queue within minutes.',
    eventsWait: true,
    isDecided: true,
  },
  'source-silent': {
    severity: 'critical',
    when: 'a source that delivered in 20 of the 24 hours before its last verified delivery has had none for 1 hour',
    threshold: HOUR_S,
    unit: 'seconds',
    holdS: 0,
    reason:
      'A source that delivers around the clock is seldom silent for an hour; one that delivers by day is never meant.',
    ofSource: true,
  },
  quarantine: {
    severity: 'warning',
    when: 'a delivery waits in quarantine for 10 minutes',
    threshold: 10 * MINUTE_S,
    unit: 'seconds',
    holdS: 10 * MINUTE_S,
    reason: 'It waits for an operator, and who is looking through them already needs no alert.',
    isDecided: true,
  },
  conflicts: {
    severity: 'warning',
    when: 'a delivery contradicted its event in the last hour',
    threshold: HOUR_S,
    unit: 'seconds',
    holdS: 0,
    reason: 'The sender has said two things about one event: there is no harmless number of them.',
  },
  'stuck-jobs': {
    severity: 'warning',
    when: 'a job is stuck for 10 minutes',
    threshold: 10 * MINUTE_S,
    unit: 'seconds',
    holdS: 10 * MINUTE_S,
    reason: 'A job is listed as stuck an hour after it began: some minutes more tell a late end from none.',
  },
  'unauthorized-storm': {
    severity: 'warning',
    when: 'in 10 minutes a source had at least 100 unauthorized deliveries, which were more than half of all',
    threshold: 100,
    unit: 'deliveries',
    holdS: 0,
    reason: 'A scanner tries some dozen; a sender with a wrong secret has all of its deliveries refused.',
    ofSource: true,
  },
  'secret-overdue': {
    severity: 'warning',
    when: 'in the last hour a delivery was verified by a secret after its `until`',
    threshold: HOUR_S,
    unit: 'seconds',
    holdS: 0,
    reason: 'The sender was to have stopped using it: once is enough to ask.',
    ofSource: true,
  },
  'starved-pool': {
    severity: 'warning',
    when: 'a replica got no session with Postgres in time in the last 5 minutes',
    threshold: 5 * MINUTE_S,
    unit: 'seconds',
    holdS: 0,
    reason:
      'Its pools are made for all that it does at one time, so once is a sign of a slow Postgres or a small pooler.',
  },
  'connections-dropped': {
    severity: 'warning',
    when: 'a replica refused or closed connections for want of room in the last 5 minutes',
    threshold: 5 * MINUTE_S,
    unit: 'seconds',
    holdS: 0,
    reason: 'The limits are far above what senders need: it is a flood, or a limit that is too low.',
  },
  'log-dropped': {
    severity: 'warning',
    when: 'a replica dropped lines of its log in the last 5 minutes',
    threshold: 5 * MINUTE_S,
    unit: 'seconds',
    holdS: 0,
    reason: 'Nobody reads the log, or its output fails: each lost line may be the one that is needed.',
  },
} as const satisfies Readonly<Record<string, Condition>>;

export type ConditionName = keyof typeof CONDITIONS;

/** Beside their thresholds. */
export const SOURCE_SILENT = {
  /** Before its last verified delivery: it delivers by night, too. */
  hours: 24,
  deliveredHours: 20,
  /** Then it is no news any more: the source is retired, or somebody knows. */
  maxS: 7 * DAY_S,
} as const;
export const UNAUTHORIZED_STORM = { minutes: 10, share: 0.5 } as const;
