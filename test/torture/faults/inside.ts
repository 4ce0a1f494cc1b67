// Faults inside the parts: Postgres' sessions and disk, a replica's clock and event loop, the rotation of secrets, and
// senders that send everything again.

import { pause } from '../../support/until.ts';
import { type Fault, indexes, victims } from './types.ts';

const TERMINATE_EVERY_MS = 300;
const REDELIVERIES = 400;
const HOUR_MS = 60 * 60 * 1_000;

const ownBackends = `select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'tallyhook%'`;

const databaseFaults: readonly Fault[] = [
  {
    name: 'postgres-terminate',
    subject: 'postgres',
    what: "pg_terminate_backend on all of the replicas' sessions, repeatedly",
    strike: async ({ world }) => {
      const state = { isHealed: false };
      async function terminate(): Promise<void> {
        while (!state.isHealed) {
          await world.query(ownBackends).catch(() => []);
          await pause(TERMINATE_EVERY_MS);
        }
      }
      const terminating = terminate();
      return {
        replicas: [],
        heal: () => {
          state.isHealed = true;
          return terminating;
        },
      };
    },
  },
  {
    name: 'disk-full',
    subject: 'postgres',
    what: "Postgres' disk is full; healed by freeing space, and by a start if Postgres ended",
    missing: ({ world }) => (world.disk === undefined ? 'Postgres has no disk of its own here' : undefined),
    strike: async ({ world }) => {
      await world.disk?.fill();
      return {
        replicas: [],
        heal: async () => {
          world.disk?.free();
          await world.postgres.start();
        },
      };
    },
  },
];

const replicaFaults: readonly Fault[] = [
  {
    name: 'clock-jump',
    subject: 'clocks',
    what: "a replica's wall clock jumps by up to three days, forwards or back, and returns",
    strike: async ({ world }, how) => {
      const { random } = how;
      const touched = victims(world, how);
      const byMs = random.pick([-1, 1]) * random.whole(2_000, 72 * HOUR_MS);
      for (const replica of touched) replica.shiftClock(byMs);
      return {
        replicas: indexes(touched),
        heal: async () => {
          for (const replica of touched) replica.shiftClock(0);
        },
      };
    },
  },
  {
    name: 'loop-stall',
    subject: 'replicas',
    what: "a replica's event loop is blocked",
    silences: true,
    strike: async ({ world }, how) => {
      const touched = victims(world, how);
      for (const replica of touched) replica.stall(how.forMs);
      // It resumes by itself after that time.
      return { replicas: indexes(touched), heal: () => Promise.resolve() };
    },
  },
  {
    name: 'secret-rotation',
    subject: 'secrets',
    what: 'a new secret is added, senders change over, the old one is dropped',
    strike: async ({ world }, { random }) => {
      const source = random.pick(['team-a', 'team-b'] as const);
      await world.sources.addSecret(source, world.replicas);
      return { replicas: [], heal: () => world.sources.dropOldSecrets(source, world.replicas) };
    },
  },
  {
    name: 'redelivery-storm',
    subject: 'senders',
    what: `${REDELIVERIES} notifications that were acknowledged long ago are sent again, all at once`,
    missing: ({ redeliver }) => (redeliver === undefined ? 'there are no senders to ask' : undefined),
    strike: async ({ redeliver }) => {
      await redeliver?.(REDELIVERIES);
      return { replicas: [], heal: () => Promise.resolve() };
    },
  },
];

export const insideFaults: readonly Fault[] = [...databaseFaults, ...replicaFaults];
