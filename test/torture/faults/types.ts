// What a fault is: it strikes a world, is held for a while, and is healed as an operator would heal it. A fault knows
// nothing of the traffic nor of what is checked afterwards.

import type { Random } from '../random.ts';
import type { Replica } from '../replica.ts';
import type { World } from '../world.ts';

/** Faults of one subject never strike together: the one's healing would undo the other. */
export type Subject =
  | 'replicas'
  | 'postgres'
  | 'rabbitmq'
  | 'sender link'
  | 'postgres link'
  | 'rabbitmq link'
  | 'clocks'
  | 'secrets'
  | 'senders';

/** What some faults need beside the world. */
export type Stage = {
  readonly world: World;
  /** The subscriber's queue, and how it is bound (again). */
  readonly subscriber?:
    | {
        readonly queue: string;
        readonly bind: () => Promise<void>;
        readonly unbind: () => Promise<void>;
        /** Takes it away when it has been emptied: what was in it must not be lost with it. */
        readonly deleteQueue: () => Promise<void>;
      }
    | undefined;
  /** Sends again, all at once, what was acknowledged before; resolves when all is answered. */
  readonly redeliver?: ((count: number) => Promise<void>) | undefined;
};

export type Strike = {
  readonly random: Random;
  /** How long it is held, for a fault that acts more than once in that time. */
  readonly forMs: number;
  /** The replicas that it may touch, where it touches replicas; any of them if it is not given. */
  readonly only?: readonly number[];
};

export type Struck = {
  /** The replicas that it touches; empty where it is all of them or none. */
  readonly replicas: readonly number[];
  /** Undoes it. Resolves when it is undone, which is not yet when all is well again. */
  readonly heal: () => Promise<void>;
};

export type Fault = {
  readonly name: string;
  readonly subject: Subject;
  /** One line for a reader. */
  readonly what: string;
  /** While it lasts a replica may give no answer in time: it is frozen, or its senders are cut off. */
  readonly silences?: boolean;
  /** Events may find no queue bound, be `returned`, and wait for an operator. */
  readonly unbinds?: boolean;
  /** It must outlast some limit: held for so long whatever the pace, instead of the schedule's usual time. */
  readonly heldMs?: readonly [min: number, max: number];
  /** Never strikes together with others. */
  readonly isAlone?: boolean;
  /** Whether what it needs is there; says why not. */
  readonly missing?: (stage: Stage) => string | undefined;
  readonly strike: (stage: Stage, how: Strike) => Promise<Struck>;
};

export function candidates({ replicas }: World, { only }: Strike): readonly Replica[] {
  return only === undefined ? replicas : replicas.filter(({ index }) => only.includes(index));
}

/** One of them, or now and then all. */
export function victims(world: World, how: Strike): readonly Replica[] {
  const choice = candidates(world, how);
  return how.random.chance(0.4) ? choice : [how.random.pick(choice)];
}

export const indexes = (replicas: readonly Replica[]) => replicas.map(({ index }) => index);

/** The same fault, held for longer than a limit that it tests, and alone: others would have to wait for it. */
export const lasting = (fault: Fault, heldMs: readonly [number, number]): Fault => ({
  ...fault,
  name: `${fault.name}-long`,
  what: `${fault.what}; for ${heldMs[0] / 1_000} to ${heldMs[1] / 1_000} s`,
  heldMs,
  isAlone: true,
});
