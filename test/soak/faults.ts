// The faults of a soak: one at a time, at fixed intervals, in an order that the seed decides. Faults that end a replica
// strike only the last one, so that the first runs as long as the soak and shows what grows. A fault that cannot strike is
// skipped; healing is tried again until it succeeds.

import { type Fault, faultsNamed, type Struck } from '../torture/faults/index.ts';
import type { Random } from '../torture/random.ts';
import { pause, until } from '../support/until.ts';
import type { World } from '../torture/world.ts';
import type { FaultSpan } from './record.ts';

/** Faults of each part and link that operators meet, and that heal by themselves or by a start. */
const NAMES = [
  'replica-kill',
  'replica-freeze',
  'replica-restart',
  'postgres-kill',
  'postgres-freeze',
  'postgres-restart',
  'postgres-terminate',
  'rabbitmq-kill',
  'rabbitmq-freeze',
  'rabbitmq-restart',
  'memory-alarm',
  'reject-publish',
  'sender-link-cut',
  'sender-link-half-open',
  'postgres-link-cut',
  'postgres-link-slow',
  'rabbitmq-link-cut',
  'rabbitmq-link-half-open',
] as const;

const ENDS_A_REPLICA = /^replica-(kill|restart)$/;
const DURATION_S = [5, 20] as const;
const HEAL_LIMIT_MS = 120_000;

type PlannedFault = { readonly name: string; readonly atS: number; readonly forS: number };

/**
 * All faults in turn, each round in an order of its own. There is none in the first and the last `everyS` seconds, to show
 * the time before and after the faults.
 */
export function planFaults(options: { totalS: number; everyS: number; random: Random }): PlannedFault[] {
  const { totalS, everyS, random } = options;
  const [shortest, longest] = DURATION_S;
  const count = Math.max(0, Math.floor(totalS / everyS) - 1);
  const rounds = Math.ceil(count / NAMES.length);
  const names = Array.from({ length: rounds }, () => random.shuffled(NAMES)).flat();
  return names.slice(0, count).map((name, index) => ({
    name,
    atS: (index + 1) * everyS,
    // At least half of the time is without a fault, however close they are.
    forS: Math.min(random.whole(shortest, longest), Math.floor(everyS / 2)),
  }));
}

/** Resolves when the last fault is healed, or after `signal` aborts, when the present one is healed. */
export async function playFaults(options: {
  world: World;
  planned: readonly PlannedFault[];
  random: Random;
  sinceMs: number;
  signal: AbortSignal;
  /** Everything is being ended, so that nothing can be healed. */
  isEnding: () => boolean;
  onSpan: (span: FaultSpan) => void;
  log: (line: string) => void;
}): Promise<void> {
  const { world, random, sinceMs, signal, isEnding, onSpan, log } = options;
  const nowS = () => (performance.now() - sinceMs) / 1_000;
  for (const { name, atS, forS } of options.planned) {
    await waitUntil(sinceMs + atS * 1_000, signal);
    if (signal.aborted) return;
    const [fault] = faultsNamed([name]);
    if (fault === undefined) continue;
    const fromS = nowS();
    log(`${fromS.toFixed(0).padStart(5)} s  ${name} for ${forS} s`);
    const struck = await strike(fault, world, { random, forMs: forS * 1_000 }, log);
    await waitUntil(sinceMs + (atS + forS) * 1_000, signal);
    if (struck !== undefined) {
      const healed = async () => isEnding() || (await heal(struck));
      await until(`${name} is healed`, healed, { limitMs: HEAL_LIMIT_MS });
    }
    onSpan({ kind: 'fault', name, fromS, toS: nowS() });
  }
}

async function heal(struck: Struck): Promise<true> {
  await struck.heal();
  return true;
}

async function strike(
  fault: Fault,
  world: World,
  how: { random: Random; forMs: number },
  log: (line: string) => void,
): Promise<Struck | undefined> {
  const touched = ENDS_A_REPLICA.test(fault.name) ? { ...world, replicas: world.replicas.slice(-1) } : world;
  try {
    return await fault.strike({ world: touched }, how);
  } catch (error) {
    log(`         ${fault.name} could not strike: ${error instanceof Error ? error.message : String(error)}`);
    return undefined;
  }
}

/** Waits in short steps, so that `signal` can end it. */
async function waitUntil(atMs: number, signal: AbortSignal): Promise<void> {
  const leftMs = () => atMs - performance.now();
  while (!signal.aborted && leftMs() > 0) await pause(Math.min(leftMs(), 200));
}
