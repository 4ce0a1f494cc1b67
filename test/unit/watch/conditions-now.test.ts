// Each condition, so and not so, from what the database holds and from the replicas' signs.

import { expect, test } from 'vitest';
import { CONDITIONS, type ConditionName } from '../../../src/base/conditions.ts';
import type { Looks, SourceLook } from '../../../src/ledger/index.ts';
import { conditionsNow, type ReplicaSigns, type Seen } from '../../../src/watch/conditions-now.ts';

const none = { count: 0, isExact: true };
const LOOKS: Looks = {
  atMs: 0,
  outbox: {
    counts: { pending: 0, returned: 0, parked: 0 },
    copies: 0,
    isComplete: true,
    oldestPendingAt: null,
    oldestPendingS: null,
  },
  quarantined: none,
  conflicts: none,
  stuckJobs: none,
  tables: [],
  partitions: [
    { table: 'deliveries', daysAhead: 7 },
    { table: 'publications', daysAhead: 7 },
  ],
  sources: [],
  leases: [{ name: 'outbox', ageS: 3_600, expiredS: -8 }],
};
const replica = (signs: ReplicaSigns['signs'] = {}, ageS = 0, isLate = false): ReplicaSigns => ({
  signs,
  ageS,
  isLate,
});

/** What of a service where all is well differs from it. */
function see({ looks, ...more }: Partial<Omit<Seen, 'looks'>> & { looks?: Partial<Looks> } = {}) {
  return conditionsNow({
    looks: { ...LOOKS, ...looks },
    replicas: [replica(), replica({}, 4)],
    sources: ['default'],
    ...more,
  });
}
const soIn = (...options: Parameters<typeof see>) =>
  see(...options)
    .filter(({ isSo }) => isSo)
    .map(({ name, subject, summary }) => (subject === '' ? [name, summary] : [name, subject, summary]));
const one = (name: ConditionName, ...options: Parameters<typeof see>) =>
  see(...options).find((found) => found.name === name);

const counts = (found: Partial<Looks['outbox']['counts']>, oldestPendingS: number | null = null) => ({
  outbox: { ...LOOKS.outbox, oldestPendingS, counts: { ...LOOKS.outbox.counts, ...found } },
});
const source = (fields: Partial<SourceLook>): SourceLook => ({
  source: 'default',
  lastVerifiedS: 10,
  secrets: [],
  hoursDelivered: 24,
  unauthorized10m: 0,
  deliveries10m: 500,
  ...fields,
});

test('where all is well, every condition is there, and none is so', () => {
  expect(see().map(({ name }) => name)).toEqual(Object.keys(CONDITIONS));
  expect(soIn()).toEqual([]);
  expect(see().map(({ isSo }) => isSo)).not.toContain(null);
});

test('while Postgres does not answer, only what needs no look is told', () => {
  const found = conditionsNow({ looks: undefined, replicas: [replica({ 'broker-away': 0 })], sources: [] });
  expect(found.filter(({ isSo }) => isSo === true).map(({ name }) => name)).toEqual(['broker-away']);
  expect(found.filter(({ isSo }) => isSo === null).map(({ name }) => name)).toEqual([
    'outbox-lag',
    'no-leader',
    'partitions-missing',
    'parked',
    'returned',
    'source-silent',
    'quarantine',
    'conflicts',
    'stuck-jobs',
    'unauthorized-storm',
    'secret-overdue',
  ]);
});

test('what waits is counted', () => {
  const looks = {
    ...counts({ pending: 7, parked: 1, returned: 2 }, 301),
    quarantined: { count: 3, isExact: true },
    conflicts: { count: 1, isExact: true },
    stuckJobs: { count: 1_000, isExact: false },
  };
  expect(soIn({ looks })).toEqual([
    ['outbox-lag', 'The oldest pending event is 5 minutes old.'],
    ['parked', '1 event is parked.'],
    ['returned', '2 events are returned.'],
    ['quarantine', '3 deliveries wait in quarantine.'],
    ['conflicts', '1 delivery has contradicted an event in the last hour.'],
    ['stuck-jobs', 'More than 1000 jobs are stuck.'],
  ]);
  expect(soIn({ looks: counts({ pending: 7 }, 300) })).toEqual([]);
});

test('the broker is away if no living replica can publish', () => {
  const away = { 'broker-away': 0, 'broker-away-for': 70 };
  expect(soIn({ replicas: [replica(away), replica()] })).toEqual([]);
  expect(
    soIn({ replicas: [replica(away), replica({ 'broker-away': 3, 'broker-away-for': 100 }, 5)] }),
  ).toEqual([]);
  const all = {
    replicas: [replica(away), replica({ ...away, 'broker-away-for': 30 }, 5), replica({}, 60, true)],
  };
  expect(soIn(all)).toEqual([
    ['broker-away', 'No replica can publish: of 2, none is connected to RabbitMQ.'],
  ]);
  expect(one('broker-away', all)).toMatchObject({ value: 0, was: { agoS: 0, forS: 35 } });
});

test('nobody leads if the lease ran out while a replica can reach the broker', () => {
  const looks = { leases: [{ name: 'outbox', ageS: null, expiredS: 75 }] };
  expect(soIn({ looks })).toEqual([['no-leader', 'No replica has led the relay for 75 seconds.']]);
  expect(soIn({ looks: { leases: [] } })).toMatchObject([['no-leader', expect.any(String)]]);
  const away = { 'broker-away': 0 };
  expect(soIn({ looks, replicas: [replica(away)] })).toMatchObject([['broker-away', expect.any(String)]]);
});

test('a time without a leader that is over was so, if nothing else explains it', () => {
  const lapse = { beganS: 190, endedS: 20 };
  expect(one('no-leader', { lapse })).toMatchObject({ isSo: false, was: { agoS: 20, forS: 170 } });
  expect(one('no-leader', { lapse: { beganS: 70, endedS: 20 } })?.was).toBeUndefined();
  expect(one('no-leader', { lapse: { beganS: 900, endedS: 400 } })?.was).toBeUndefined();
  const away = replica({ 'postgres-away': 18, 'postgres-away-for': 180 });
  expect(one('no-leader', { lapse, replicas: [away] })?.was).toBeUndefined();
});

test('of Postgres the longest outage that a replica remembers counts, also of a replica that is late', () => {
  const replicas = [
    replica({ 'postgres-away': 12, 'postgres-away-for': 61 }),
    replica({ 'postgres-away': 2, 'postgres-away-for': 95 }, 40, true),
    replica({ 'postgres-away': 290, 'postgres-away-for': 1_000 }, 20, true),
  ];
  expect(one('postgres-away', { replicas })).toEqual({
    name: 'postgres-away',
    subject: '',
    severity: 'critical',
    isSo: false,
    summary: 'A replica could write nothing to Postgres for 95 seconds.',
    value: 95,
    was: { agoS: 42, forS: 95 },
  });
  expect(
    one('postgres-away', { replicas: [replica({ 'postgres-away': 0, 'postgres-away-for': 5 })] })?.isSo,
  ).toBe(true);
});

test('a disk is full if Postgres refused to write for it, or if RabbitMQ blocks for long', () => {
  expect(soIn({ replicas: [replica(), replica({ 'disk-full': 200 }, 9)] })).toEqual([
    ['disk-full', 'Postgres refused to write for want of disk 3 minutes ago.'],
  ]);
  const blocked = (forS: number) => ({
    replicas: [replica(), replica({ 'broker-blocked': 0, 'broker-blocked-for': forS })],
  });
  // A follower does not publish, so RabbitMQ does not tell it.
  const isAway = ['broker-away', 'RabbitMQ takes no more messages.'];
  expect(soIn(blocked(299))).toEqual([isAway]);
  expect(soIn(blocked(300))).toEqual([
    isAway,
    ['disk-full', 'RabbitMQ has taken no messages for 5 minutes: it is short of disk or memory.'],
  ]);
});

test('a source is silent if it delivered around the clock and is configured', () => {
  const sources = [
    source({ lastVerifiedS: 3_601, hoursDelivered: 20 }),
    source({ source: 'by-day', lastVerifiedS: 3_601, hoursDelivered: 19 }),
    source({ source: 'gone', lastVerifiedS: 3_601 }),
    source({ source: 'retired', lastVerifiedS: 8 * 86_400 }),
    source({ source: 'new', lastVerifiedS: null }),
  ];
  const configured = ['default', 'by-day', 'retired', 'new'];
  expect(soIn({ looks: { sources }, sources: configured })).toEqual([
    ['source-silent', 'default', 'The last verified delivery of default came 60 minutes ago.'],
  ]);
});

const storm = (unauthorized10m: number, deliveries10m: number) =>
  soIn({ looks: { sources: [source({ unauthorized10m, deliveries10m })] } });

test('unauthorized deliveries are a storm if they are many, and most of all', () => {
  expect(storm(100, 199)).toEqual([
    ['unauthorized-storm', 'default', '100 of 199 deliveries of default were unauthorized in 10 minutes.'],
  ]);
  expect(storm(99, 99)).toEqual([]);
  expect(storm(100, 200)).toEqual([]);
});

test('partitions are missing if a table has fewer than three days', () => {
  const partitions = [
    { table: 'deliveries', daysAhead: 3 },
    { table: 'publications', daysAhead: 2 },
  ];
  expect(soIn({ looks: { partitions } })).toEqual([
    ['partitions-missing', 'publications has partitions for 2 days ahead.'],
  ]);
});

test('a sign of any replica is so for as long as its condition looks back', () => {
  const signs = {
    'starved-pool': 295,
    'connections-dropped': 294,
    'log-dropped': 0,
  };
  expect(soIn({ replicas: [replica(), replica(signs, 5)] }).map(([name]) => name)).toEqual([
    'connections-dropped',
    'log-dropped',
  ]);
});

test('a secret is overdue if it was used in the last hour after its time', () => {
  const overdue = [
    { source: 'team-a', lastUsedS: 3_599 },
    { source: 'team-b', lastUsedS: 3_600 },
  ];
  expect(soIn({ overdue })).toEqual([
    [
      'secret-overdue',
      'team-a',
      'A delivery of team-a was verified by a secret that should not be used any more.',
    ],
  ]);
});
