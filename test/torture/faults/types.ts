// What a fault is: it strikes a world, lasts for a while, and is healed as an operator would heal it. A fault knows nothing
// of the traffic or of the checks.

import type { Random } from '../random.ts';
import type { Replica } from '../replica.ts';
import type { World } from '../world.ts';

/** Faults of one subject never strike together: healing one would undo the other. */
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

/** What a fault acts on: the world and, for some, the subscriber and the senders. */
export type Stage = {
  readonly world: World;
  /** The subscriber's queue. */
  readonly subscriber?:
    | {
        readonly queue: string;
        readonly has: (id: string) => boolean;
        readonly bind: () => Promise<void>;
        readonly unbind: () => Promise<void>;
        /** Deletes it once it is empty: no message may be lost with it. */
        readonly deleteQueue: () => Promise<void>;
      }
    | undefined;
  /** Sends again, all at once, so many deliveries that were acknowledged; resolves when all are answered. */
  readonly redeliver?: ((count: number) => Promise<void>) | undefined;
};

export type Strike = {
  readonly random: Random;
  /** How long it lasts, for a fault that acts more than once in that time. */
  readonly forMs: number;
  /** The replicas that it may touch; by default all. */
  readonly only?: readonly number[];
};

export type Struck = {
  /** The replicas that it touches; empty means all or none. */
  readonly replicas: readonly number[];
  /** Events that were committed and not published yet when it struck, if it is a fault of the hand-off. */
  readonly unpublished?: number | undefined;
  /** Requests on new connections that got no answer when their replica stopped, if it is a fault that counts them. */
  readonly cutOff?: number | undefined;
  /** Undoes it. Resolves when it is undone; recovery may take longer. */
  readonly heal: () => Promise<void>;
};

export type Fault = {
  readonly name: string;
  readonly subject: Subject;
  /** One line for the report. */
  readonly what: string;
  /** While it lasts a replica may answer late or not at all: it is frozen, or its senders are cut off. */
  readonly silences?: boolean;
  /** While it lasts events may be `returned`, since no queue is bound, and wait for an operator. */
  readonly unbinds?: boolean;
  /** For a fault that must outlast a limit: it lasts so long whatever the pace, instead of the schedule's usual time. */
  readonly durationMs?: readonly [min: number, max: number];
  /** Never strikes together with others. */
  readonly isAlone?: boolean;
  /** Why it cannot strike here; undefined if it can. */
  readonly missing?: (stage: Stage) => string | undefined;
  readonly strike: (stage: Stage, how: Strike) => Promise<Struck>;
};

export function candidates({ replicas }: World, { only }: Strike): readonly Replica[] {
  return only === undefined ? replicas : replicas.filter(({ index }) => only.includes(index));
}

/** One of the candidates, or sometimes all. */
export function victims(world: World, how: Strike): readonly Replica[] {
  const choice = candidates(world, how);
  return how.random.chance(0.4) ? choice : [how.random.pick(choice)];
}

export const indexes = (replicas: readonly Replica[]) => replicas.map(({ index }) => index);

/** The same fault, made to outlast a limit, and alone: other faults would have to wait for it. */
export const lasting = (fault: Fault, durationMs: readonly [number, number]): Fault => ({
  ...fault,
  name: `${fault.name}-long`,
  what: `${fault.what}; for ${durationMs[0] / 1_000} to ${durationMs[1] / 1_000} s`,
  durationMs,
  isAlone: true,
});
