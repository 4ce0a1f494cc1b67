// Limits processes to a share of a core by a control group each, of cgroup v1 or v2. So a machine of two cores can show how much each
// of several replicas adds while cores are free. The groups are removed after their processes, also if we are killed.

import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Guard } from '../scripts/services/guard.ts';

export type Quota = {
  /** To this share of one core, or undefined for no limit. */
  readonly limit: (share: number | undefined) => void;
  /** To be called when its process has ended. */
  readonly remove: () => void;
};

/** Puts a running process, with all its threads, into a group of its own, which has no limit at first. */
export type Quotas = (pid: number) => Quota;

/** Short, so that a process waits for milliseconds and not for a tenth of a second: of the usual 100 ms it would sleep 95. */
const PERIOD_US = 20_000;

type Layout = {
  readonly parent: string;
  /** Name and content of the files that set a limit. */
  readonly files: (quotaUs: number | undefined) => readonly (readonly [string, string])[];
};

/** @throws Error with the reason if this machine or this account cannot limit processes */
export function findQuotas(guard: Pick<Guard, 'removeInTheEnd'>, root = '/sys/fs/cgroup'): Quotas {
  const layout = layoutOf(root);
  // Tried now, so that the reason is known before anything is started.
  makeGroup(guard, layout).remove();
  return (pid) => {
    const quota = makeGroup(guard, layout);
    quota.take(pid);
    return quota;
  };
}

function layoutOf(root: string): Layout {
  if (existsSync(join(root, 'cpu/tasks')))
    return {
      parent: join(root, 'cpu'),
      files: (quotaUs = -1) => [
        ['cpu.cfs_period_us', String(PERIOD_US)],
        ['cpu.cfs_quota_us', String(quotaUs)],
      ],
    };
  const passedOn = join(root, 'cgroup.subtree_control');
  if (!existsSync(passedOn)) throw new Error(`there are no control groups in ${root}`);
  if (!readFileSync(passedOn, 'utf8').split(/\s+/).includes('cpu'))
    throw new Error(`the control groups in ${root} have no controller for the processor`);
  return { parent: root, files: (quotaUs) => [['cpu.max', `${quotaUs ?? 'max'} ${PERIOD_US}`]] };
}

function makeGroup(guard: Pick<Guard, 'removeInTheEnd'>, { parent, files }: Layout) {
  const group = join(parent, `tallyhook-bench-${randomBytes(6).toString('hex')}`);
  guard.removeInTheEnd(group);
  mkdirSync(group);
  return {
    take: (pid: number) => writeFileSync(join(group, 'cgroup.procs'), String(pid)),
    limit: (share: number | undefined) => {
      const quotaUs = share === undefined ? undefined : Math.round(share * PERIOD_US);
      for (const [name, content] of files(quotaUs)) writeFileSync(join(group, name), content);
    },
    remove: () => rmdirSync(group),
  };
}
