// How it is with each condition at one moment, from what the database holds and from the signs of the replicas. Pure. Knows no hold times:
// what has just begun is so.

import {
  CONDITIONS,
  type Condition,
  type ConditionName,
  type Severity,
  SOURCE_SILENT,
  UNAUTHORIZED_STORM,
} from '../base/conditions.ts';
import type { Looks, overdueSecrets, Signs } from '../ledger/index.ts';

export type ReplicaSigns = {
  readonly signs: Signs;
  /** Since they were written. */
  readonly ageS: number;
  /** Late ones count for what they remember, and not for what is so now. */
  readonly isLate: boolean;
};

/** When the relay was last without a leader, because a lease ran out. */
export type Lapse = { readonly beganS: number; readonly endedS: number };

export type Seen = {
  /** Undefined while the database cannot be asked. */
  readonly looks: Looks | undefined;
  readonly replicas: readonly ReplicaSigns[];
  readonly lapse?: Lapse | undefined;
  /** The configured ones. */
  readonly sources: readonly string[];
  /** Those that used a secret after its time, and how long ago last. */
  readonly overdue?: ReturnType<typeof overdueSecrets>;
  /** Of all times in thresholds, for tests. */
  readonly scale?: number;
};

export type ConditionNow = {
  readonly name: ConditionName;
  /** A source, or nothing. */
  readonly subject: string;
  readonly severity: Severity;
  /** Null: it cannot be told now. */
  readonly isSo: boolean | null;
  readonly summary: string;
  /** What was compared. Null where it cannot be told. */
  readonly value: number | null;
  /** When it was last so, in seconds before now, and for how long then. Undefined if it was not, or long ago. */
  readonly was: { readonly agoS: number; readonly forS: number } | undefined;
};

type Finding = Omit<ConditionNow, 'name' | 'severity' | 'subject'> & { readonly subject?: string };

type Input = Required<Pick<Seen, 'scale'>> & Seen & { readonly looks: Looks };
/** Those that need no look at the database. */
type Known = Required<Pick<Seen, 'scale'>> & Seen;

/** All conditions; those of sources once for each source that they are so of, or once for none. */
export function conditionsNow({ scale = 1, ...seen }: Seen): ConditionNow[] {
  const known: Known = { ...seen, scale };
  return Object.entries(CONDITIONS).flatMap(([key, { severity }]) => {
    const name = key as ConditionName;
    const findings = findingsOf(name, known);
    return findings.map((finding) => ({ name, severity, subject: '', ...finding }));
  });
}

function findingsOf(name: ConditionName, known: Known): readonly Finding[] {
  const bySigns = BY_SIGNS[name];
  if (bySigns !== undefined) return bySigns(known);
  const { looks } = known;
  if (looks === undefined) return [UNKNOWN];
  return BY_LOOKS[name]?.({ ...known, looks }) ?? [UNKNOWN];
}

const UNKNOWN: Finding = {
  isSo: null,
  summary: 'This cannot be told while Postgres does not answer.',
  value: null,
  was: undefined,
};

const finding = (isSo: boolean, value: number | null, summary: string, forS = 0): Finding => ({
  isSo,
  value,
  summary,
  was: isSo ? { agoS: 0, forS } : undefined,
});

const BY_LOOKS: Partial<Record<ConditionName, (input: Input) => readonly Finding[]>> = {
  'outbox-lag': ({ looks, scale }) => {
    const oldestS = looks.outbox.oldestPendingS ?? 0;
    return [
      finding(
        oldestS > CONDITIONS['outbox-lag'].threshold * scale,
        oldestS,
        oldestS === 0
          ? 'No event waits to be published.'
          : `The oldest pending event is ${spanOf(oldestS)} old.`,
      ),
    ];
  },
  'no-leader': noLeader,
  'partitions-missing': ({ looks }) => {
    const fewest = looks.partitions.toSorted((a, b) => a.daysAhead - b.daysAhead)[0];
    const days = fewest?.daysAhead ?? 0;
    return [
      finding(
        days < CONDITIONS['partitions-missing'].threshold,
        days,
        `${fewest?.table ?? 'A table'} has partitions for ${count(days, 'day')} ahead.`,
      ),
    ];
  },
  parked: ({ looks }) => [counted(exactly(looks.outbox.counts.parked), ['event is', 'events are'], 'parked')],
  returned: ({ looks }) => [
    counted(exactly(looks.outbox.counts.returned), ['event is', 'events are'], 'returned'),
  ],
  quarantine: ({ looks }) => [
    counted(looks.quarantined, ['delivery waits', 'deliveries wait'], 'in quarantine'),
  ],
  conflicts: ({ looks }) => [
    counted(looks.conflicts, ['delivery has', 'deliveries have'], 'contradicted an event in the last hour'),
  ],
  'stuck-jobs': ({ looks }) => [counted(looks.stuckJobs, ['job is', 'jobs are'], 'stuck')],
  'source-silent': ({ looks, sources, scale }) => {
    const silent = looks.sources.flatMap(({ source, lastVerifiedS, hoursDelivered }) => {
      if (lastVerifiedS === null || !sources.includes(source)) return [];
      const isSilent =
        lastVerifiedS > CONDITIONS['source-silent'].threshold * scale && lastVerifiedS <= SOURCE_SILENT.maxS;
      if (!isSilent || hoursDelivered < SOURCE_SILENT.deliveredHours) return [];
      const summary = `The last verified delivery of ${source} came ${spanOf(lastVerifiedS)} ago.`;
      return [{ ...finding(true, lastVerifiedS, summary), subject: source }];
    });
    return orNone(silent, 'No source that delivers around the clock is silent.');
  },
  'secret-overdue': ({ overdue = [], scale }) => {
    const recent = overdue.flatMap(({ source, lastUsedS }) => {
      if (lastUsedS >= CONDITIONS['secret-overdue'].threshold * scale) return [];
      const summary = `A delivery of ${source} was verified by a secret that should not be used any more.`;
      return [{ ...finding(true, lastUsedS, summary), subject: source }];
    });
    return orNone(recent, 'No source uses a secret after its time.');
  },
  'unauthorized-storm': ({ looks }) => {
    const { threshold } = CONDITIONS['unauthorized-storm'];
    const storms = looks.sources.flatMap(({ source, unauthorized10m: refused, deliveries10m: all }) => {
      if (refused < threshold || refused <= all * UNAUTHORIZED_STORM.share) return [];
      const summary = `${refused} of ${all} deliveries of ${source} were unauthorized in ${UNAUTHORIZED_STORM.minutes} minutes.`;
      return [{ ...finding(true, refused, summary), subject: source }];
    });
    return orNone(storms, 'No source has most of its deliveries refused as unauthorized.');
  },
};

const BY_SIGNS: Partial<Record<ConditionName, (known: Known) => readonly Finding[]>> = {
  'broker-away': ({ replicas }) => {
    const live = replicas.filter(({ isLate }) => !isLate);
    // RabbitMQ tells of a block who publishes, and nobody else: one replica that knows is enough.
    const blocked = live.filter(({ signs }) => signs['broker-blocked'] === 0);
    if (blocked.length > 0) {
      const forS = Math.max(...blocked.map(({ signs, ageS }) => (signs['broker-blocked-for'] ?? 0) + ageS));
      return [finding(true, 0, 'RabbitMQ takes no more messages.', forS)];
    }
    const able = live.filter(({ signs }) => signs['broker-away'] !== 0).length;
    const isSo = live.length > 0 && able === 0;
    const forS = Math.min(...live.map(({ signs, ageS }) => (signs['broker-away-for'] ?? 0) + ageS));
    const summary = isSo
      ? `No replica can publish: of ${live.length}, none is connected to RabbitMQ.`
      : `${able} of ${count(live.length, 'replica')} can publish.`;
    return [finding(isSo, able, summary, isSo ? forS : 0)];
  },
  'postgres-away': ({ replicas, scale }) => {
    const live = replicas.filter(({ isLate }) => !isLate);
    const isSo = live.length > 0 && live.every(({ signs }) => signs['postgres-away'] === 0);
    const longest = (isSo ? live : replicas)
      .map(({ signs, ageS }) => ({
        agoS: (signs['postgres-away'] ?? Number.POSITIVE_INFINITY) + ageS,
        forS: signs['postgres-away-for'] ?? 0,
      }))
      .filter(({ agoS }) => agoS < LOOK_BACK_S * scale)
      .toSorted((a, b) => b.forS - a.forS)[0];
    const summary =
      longest === undefined
        ? 'Postgres takes deliveries.'
        : isSo
          ? `Postgres has taken no deliveries for ${spanOf(longest.forS)}.`
          : `A replica could write nothing to Postgres for ${spanOf(longest.forS)}.`;
    return [{ isSo, value: longest?.forS ?? 0, summary, was: longest }];
  },
  'disk-full': diskFull,
  'starved-pool': recently('starved-pool', {
    so: 'A replica got no session with Postgres in time.',
    otherwise: 'Each replica gets its sessions with Postgres in time.',
  }),
  'connections-dropped': recently('connections-dropped', {
    so: 'A replica had no room for all connections.',
    otherwise: 'Each replica has room for connections.',
  }),
  'log-dropped': recently('log-dropped', {
    so: 'A replica dropped lines of its log.',
    otherwise: 'Each replica writes all lines of its log.',
  }),
};

/** How far back a sign counts: as long as the end of an incident takes. */
const LOOK_BACK_S = 300;

const lastOf = (replicas: readonly ReplicaSigns[], sign: string): number =>
  Math.min(...replicas.map(({ signs, ageS }) => (signs[sign] ?? Number.POSITIVE_INFINITY) + ageS));

function recently(
  name: ConditionName,
  { so, otherwise }: { readonly so: string; readonly otherwise: string },
): (known: Known) => readonly Finding[] {
  const { threshold }: Condition = CONDITIONS[name];
  return ({ replicas, scale }) => {
    const agoS = lastOf(replicas, name);
    if (agoS >= threshold * scale) return [finding(false, null, otherwise)];
    return [{ isSo: true, value: agoS, summary: so, was: { agoS, forS: 0 } }];
  };
}

function noLeader({ looks, replicas, lapse, scale }: Input): readonly Finding[] {
  const { threshold } = CONDITIONS['no-leader'];
  const expiredS = looks.leases.find(({ name }) => name === 'outbox')?.expiredS ?? 0;
  const canSomebody = replicas.some(({ signs, isLate }) => !isLate && signs['broker-away'] !== 0);
  const isLeaderless = looks.leases.every(({ name, expiredS: s }) => name !== 'outbox' || s > 0);
  const isSo = isLeaderless && canSomebody;
  if (isSo) return [finding(true, expiredS, `No replica has led the relay for ${spanOf(expiredS)}.`)];
  // It was seen by nobody: all replicas were down, or could not ask.
  const lapsedS = lapse === undefined ? 0 : lapse.beganS - lapse.endedS;
  const isOver =
    lapse !== undefined &&
    lapsedS >= threshold * scale &&
    lapse.endedS < LOOK_BACK_S * scale &&
    !OTHER_CAUSES.some((sign) => wasSoWithin(replicas, sign, lapse));
  return [
    {
      isSo: false,
      value: 0,
      summary: isOver ? `No replica led the relay for ${spanOf(lapsedS)}.` : 'A replica leads the relay.',
      was: isOver ? { agoS: lapse.endedS, forS: lapsedS } : undefined,
    },
  ];
}

/** They are conditions of their own, and nobody can lead meanwhile. */
const OTHER_CAUSES = ['postgres-away', 'broker-away'];

function wasSoWithin(replicas: readonly ReplicaSigns[], sign: string, { beganS, endedS }: Lapse): boolean {
  return replicas.some(({ signs, ageS }) => {
    const agoS = (signs[sign] ?? Number.POSITIVE_INFINITY) + ageS;
    return agoS <= beganS && agoS + (signs[`${sign}-for`] ?? 0) >= endedS;
  });
}

function diskFull({ replicas, scale }: Known): readonly Finding[] {
  const thresholdS = CONDITIONS['disk-full'].threshold * scale;
  const refusedS = lastOf(replicas, 'disk-full');
  if (refusedS < thresholdS) {
    const summary = `Postgres refused to write for want of disk ${spanOf(refusedS)} ago.`;
    return [{ isSo: true, value: refusedS, summary, was: { agoS: refusedS, forS: 0 } }];
  }
  const blockedS = Math.max(
    0,
    ...replicas
      .filter(({ signs, isLate }) => !isLate && signs['broker-blocked'] === 0)
      .map(({ signs, ageS }) => (signs['broker-blocked-for'] ?? 0) + ageS),
  );
  if (blockedS < thresholdS) return [finding(false, null, 'Postgres and RabbitMQ have disk to write to.')];
  return [
    finding(
      true,
      blockedS,
      `RabbitMQ has taken no messages for ${spanOf(blockedS)}: it is short of disk or memory.`,
    ),
  ];
}

const orNone = (found: readonly Finding[], none: string): readonly Finding[] =>
  found.length > 0 ? found : [finding(false, null, none)];

type Count = Looks['conflicts'];

const exactly = (n: number): Count => ({ count: n, isExact: true });

/** `No job is stuck.`, `1 job is stuck.`, `More than 1000 jobs are stuck.` */
function counted(
  { count: n, isExact }: Count,
  [one, many]: readonly [string, string],
  rest: string,
): Finding {
  const begin = n === 0 ? `No ${one}` : `${isExact ? '' : 'More than '}${n} ${n === 1 ? one : many}`;
  return finding(n > 0, n, `${begin} ${rest}.`);
}

/** `1 day`, `3 days`. */
const count = (n: number, one: string) => `${n} ${n === 1 ? one : `${one}s`}`;

const UNITS: readonly (readonly [number, string])[] = [
  [86_400, 'day'],
  [3_600, 'hour'],
  [60, 'minute'],
];

/** In one unit, of which there are at least two: `90 seconds`, `2 minutes`. */
function spanOf(seconds: number): string {
  const [size, unit] = UNITS.find(([of]) => seconds >= 2 * of) ?? [1, 'second'];
  return count(Math.floor(seconds / size), unit);
}
