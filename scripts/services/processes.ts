// The processes of this machine, by ps: a Postgres has each of its children in a process group of its own, and those of others start it
// in a session of its own.

import { spawnSync } from 'node:child_process';

export type Process = {
  readonly pid: number;
  readonly parent: number;
  /** It has ended, and nobody has asked how. */
  readonly isZombie: boolean;
  /** Its command line, or what it calls itself. */
  readonly args: string;
};

export function listProcesses(): Process[] {
  const { stdout, error } = spawnSync('ps', ['-A', '-o', 'pid=,ppid=,stat=,args='], { encoding: 'utf8' });
  if (error) throw new Error('ps is missing, which finds the processes of a Postgres', { cause: error });
  return stdout.split('\n').flatMap((line) => {
    const found = /^\s*(?<pid>\d+)\s+(?<parent>\d+)\s+(?<state>\S+)\s+(?<args>.*)$/.exec(line)?.groups;
    if (found === undefined) return [];
    const { pid, parent, state = '', args = '' } = found;
    return [{ pid: Number(pid), parent: Number(parent), isZombie: state.startsWith('Z'), args }];
  });
}

export const childrenOf = (parent: number): Process[] =>
  listProcesses().filter((each) => each.parent === parent);

/** Does nothing if it has ended. */
export function sendTo(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It ended at this moment.
  }
}
