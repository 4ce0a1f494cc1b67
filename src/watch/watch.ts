// Looks every ten seconds at the conditions, and writes what has become an incident and what has ended. Only whoever has the lease of the watch
// does so. A look that fails is a line of the log; the next one makes up for it.

import { randomUUIDv7 } from 'node:crypto';
import type { Logger } from '../base/log/log.ts';
import { describeError } from '../base/errors.ts';
import {
  type DatabaseConnection,
  type ExpiringSecret,
  type Lease,
  type Looks,
  overdueSecrets,
} from '../ledger/index.ts';
import { type ConditionNow, conditionsNow, type ReplicaSigns, type Seen } from './conditions-now.ts';
import {
  type Channel,
  readDecisions,
  type Remembered,
  remember,
  severityOf,
  writeIncidents,
} from './incidents.ts';
import { judge, type Judged } from './judge.ts';

/** Two looks may fail or be slow. */
const WELL_LOOKS = 3;
/** One line of looks that fail in so long: Postgres is away, as a rule, and other lines say so. */
const SAY_MS = 10 * 60_000;

/** Of SOURCES_FILE. */
export type Configured = {
  readonly names: readonly string[];
  /** Secrets that should be used until some time. */
  readonly expiring: readonly ExpiringSecret[];
};

export type WatchParts = {
  readonly connection: Pick<DatabaseConnection, 'execute'>;
  /** Shared with scrapes. Rejects while Postgres is away. */
  readonly looks: () => Promise<Looks>;
  readonly lease: Pick<Lease, 'holder' | 'epoch' | 'isLeading'>;
  /** Of this replica, as they are now. */
  readonly signs: () => ReplicaSigns['signs'];
  readonly sources: () => Configured;
  readonly channels: () => readonly Channel[];
  readonly timing: { readonly lookMs: number; readonly scale: number; readonly lateAfterS: number };
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly log: Logger;
};

export type Watch = {
  readonly start: () => void;
  /** Begins no more looks, and resolves when none is under way. */
  readonly end: () => Promise<void>;
  /** This replica has the lease, its last looks worked, and nothing critical goes on: what it says is true of the whole service. */
  readonly isWell: () => boolean;
  /** As this replica sees them at this moment, whoever has the lease. Never rejects. */
  readonly conditions: () => Promise<readonly ConditionNow[]>;
};

export function createWatch(parts: WatchParts): Watch {
  const { connection, lease, signs, sources, timing, now, log } = parts;
  let timer: NodeJS.Timeout | undefined;
  let isEnded = false;
  let looking = Promise.resolve();
  let saidMs = Number.NEGATIVE_INFINITY;
  let wellMs = Number.NEGATIVE_INFINITY;

  const ownSigns = (): ReplicaSigns => ({ signs: signs(), ageS: 0, isLate: false });

  async function see(): Promise<{ seen: Seen & { readonly looks: Looks }; remembered: Remembered }> {
    const looks = await parts.looks();
    const remembered = await remember(connection, lease.holder, timing);
    const { others, lapse } = remembered;
    const { names, expiring } = sources();
    const seen = {
      looks,
      replicas: [ownSigns(), ...others],
      lapse,
      sources: names,
      overdue: overdueSecrets(looks.sources, expiring, looks.atMs),
      scale: timing.scale,
    };
    return { seen, remembered };
  }

  async function look(): Promise<void> {
    const epoch = lease.epoch(); // before it looks: what it sees under one epoch is written under no other
    if (!lease.isLeading() || epoch === undefined) return;
    const { seen, remembered } = await see();
    const { pending, returned, parked } = seen.looks.outbox.counts;
    const judged = judge({
      ...remembered,
      conditions: conditionsNow(seen),
      waiting: pending + returned + parked,
      newId: randomUUIDv7,
      scale: timing.scale,
    });
    const decided = await readDecisions(connection, judged.known);
    const channels = parts.channels();
    const isOurs = await writeIncidents(connection, judged, {
      holder: lease.holder,
      epoch,
      decided,
      channels,
      looks: seen.looks,
    });
    if (!isOurs) return;
    wellMs = hasCritical(judged) ? Number.NEGATIVE_INFINITY : now();
    for (const { now: condition } of judged.begun)
      log.warn(wordsOf(condition.name, condition.subject), `an incident begins: ${condition.summary}`);
    for (const { name, subject, endedMs } of judged.known)
      if (endedMs !== null) log.info(wordsOf(name, subject), 'an incident has ended');
  }

  async function lookAndLog(): Promise<void> {
    try {
      await look();
    } catch (error) {
      if (now() - saidMs < SAY_MS) return;
      saidMs = now();
      log.warn({ err: describeError(error) }, 'the watch could not look at the conditions');
    }
  }

  function start(): void {
    looking = lookAndLog().finally(() => {
      if (!isEnded) timer = setTimeout(start, timing.lookMs);
    });
  }

  return {
    start,
    end: () => {
      isEnded = true;
      clearTimeout(timer);
      return looking;
    },
    isWell: () => lease.isLeading() && now() - wellMs < WELL_LOOKS * timing.lookMs,
    conditions: async () => {
      const alone: Seen = {
        looks: undefined,
        replicas: [ownSigns()],
        sources: sources().names,
        scale: timing.scale,
      };
      return conditionsNow(
        await see().then(
          ({ seen }) => seen,
          () => alone,
        ),
      );
    },
  };
}

function hasCritical({ begun, known }: Judged): boolean {
  const names = known.filter(({ endedMs }) => endedMs === null).map(({ name }) => name);
  return [...names, ...begun.map(({ now: { name } }) => name)].some(
    (name) => severityOf(name) === 'critical',
  );
}

const wordsOf = (condition: string, subject: string) =>
  subject === '' ? { condition } : { condition, source: subject };
