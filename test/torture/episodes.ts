// Carries out the schedule: strikes and heals the faults of each episode at their times, and waits until everything has
// recovered before the next one. So the time to recover can be measured.

import type { Stage } from './faults/index.ts';
import type { Operator } from './operator.ts';
import type { Episode, Injection } from './recorded.ts';
import type { PlannedEpisode, PlannedFault } from './schedule.ts';
import type { Senders } from './senders.ts';
import { pause, until } from '../support/until.ts';

/** So long after a fault's end, without a restart, a sender must be acknowledged and the outbox empty. */
export const RECOVERY_LIMIT_MS = 60_000;

type Played = { readonly episode: Episode; readonly injections: readonly Injection[] };

/** @throws Error when a fault could not be struck or healed: then the harness failed, and not Tallyhook. */
export async function playEpisode(
  planned: PlannedEpisode,
  { stage, operator, senders }: { stage: Stage; operator: Operator; senders: Senders },
): Promise<Played> {
  await pause(planned.gapMs);
  const startMs = performance.now();
  const injections = await Promise.all(planned.faults.map((each) => inject(each, planned.number, stage)));
  const endMs = performance.now();
  const [drainMs, ...acknowledged] = await Promise.all([
    operator.drain(endMs, RECOVERY_LIMIT_MS),
    ...injections.flatMap(({ healedMs, replicas }) =>
      (replicas.length === 0 ? [[]] : replicas.map((replica) => [replica])).map((touched) =>
        until('a sender is acknowledged', () => senders.acknowledgedSince(healedMs, touched), {
          limitMs: RECOVERY_LIMIT_MS,
        }).catch(() => undefined),
      ),
    ),
  ]);
  const isWell = drainMs !== undefined && acknowledged.every((atMs) => atMs !== undefined);
  return {
    episode: {
      number: planned.number,
      startMs,
      endMs,
      recoveredMs: isWell ? performance.now() : undefined,
      drainMs,
    },
    injections,
  };
}

async function inject(planned: PlannedFault, episode: number, stage: Stage): Promise<Injection> {
  const { fault, atMs, forMs, random } = planned;
  await pause(atMs);
  const startMs = performance.now();
  try {
    const struck = await fault.strike(stage, { random, forMs });
    await pause(Math.max(0, forMs - (performance.now() - startMs)));
    const endMs = performance.now();
    await struck.heal();
    return {
      fault: fault.name,
      episode,
      replicas: struck.replicas,
      silences: fault.silences === true,
      unbinds: fault.unbinds === true,
      unpublished: struck.unpublished,
      cutOff: struck.cutOff,
      startMs,
      endMs,
      healedMs: performance.now(),
    };
  } catch (cause) {
    throw new Error(`${fault.name} could not be struck or healed`, { cause });
  }
}
