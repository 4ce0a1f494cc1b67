// Faults by a setting of Postgres that changes under its open sessions: commits that wait for a standby which is not there, and a
// server that becomes read-only and back.

import type { World } from '../world.ts';
import type { Fault } from './types.ts';

const reload = 'select pg_reload_conf()';

/** Takes effect in open sessions, too, as soon as they are between two statements. */
async function set(world: World, name: string, value: string): Promise<void> {
  await world.query(`alter system set ${name} = '${value}'`);
  await world.query(reload);
}

async function reset(world: World, name: string): Promise<void> {
  await world.query(`alter system reset ${name}`);
  await world.query(reload);
}

const fault = (name: string, what: string, [setting, value]: readonly [string, string]): Fault => ({
  name,
  subject: 'postgres',
  what,
  missing: ({ world }) => (world.patroni === undefined ? undefined : 'Patroni sets what its members are'),
  strike: async ({ world }) => {
    await set(world, setting, value);
    return { replicas: [], heal: () => reset(world, setting) };
  },
});

export const settingFaults: readonly Fault[] = [
  fault(
    'postgres-commits-hang',
    'commits wait for a synchronous standby that is not there, until it is no longer required',
    ['synchronous_standby_names', 'away'],
  ),
  fault('postgres-read-only', 'Postgres accepts no writes, as a standby does, and then does again', [
    'default_transaction_read_only',
    'on',
  ]),
];
