// All faults, by name.

import { clusterFaults } from './clusters.ts';
import { brokerFaults } from './broker.ts';
import { handOffFaults } from './hand-off.ts';
import { insideFaults } from './inside.ts';
import { networkFaults } from './network.ts';
import { processFaults } from './processes.ts';
import { settingFaults } from './settings.ts';
import { stoppingFault } from './stopping.ts';
import type { Fault } from './types.ts';

export { MIGRATION } from './migration.ts';
export type { Fault, Stage, Struck, Subject } from './types.ts';

export const FAULTS: readonly Fault[] = [
  ...processFaults,
  stoppingFault,
  ...handOffFaults,
  ...networkFaults,
  ...brokerFaults,
  ...insideFaults,
  ...settingFaults,
  ...clusterFaults,
];

/** @throws Error that lists the known names. */
export function faultsNamed(names: readonly string[]): Fault[] {
  return names.map((name) => {
    const fault = FAULTS.find((candidate) => candidate.name === name);
    if (fault !== undefined) return fault;
    throw new Error(`there is no fault ${name}, but: ${FAULTS.map((known) => known.name).join(', ')}`);
  });
}
