// The table that `npm test -- --profile` prints: seconds of processor time by test file, in all and by folder, and what the files
// started. `test/support/profile.ts` measures them.

import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** In seconds: of the worker, of the processes that it waited for, and by the clock. */
export type FileProfile = {
  readonly file: string;
  readonly own: number;
  readonly children: number;
  readonly taken: number;
  readonly services: number;
  readonly databases: number;
  readonly processes: number;
  readonly browsers: number;
};

export const WITHOUT_PROFILE = 'there is no profile: this system has no /proc/self/stat';

/** The clock of /proc: Linux has it at 100 on every machine that Node runs on. */
const TICKS_A_SECOND = 100;

/** Its own and those of the processes that it waited for. @param stat what `/proc/<pid>/stat` says, see proc_pid_stat(5) */
export function secondsOfProcess(stat: string): { readonly own: number; readonly children: number } {
  // The second field is the program's name, which may have spaces and parentheses in it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [utime = 0, stime = 0, cutime = 0, cstime = 0] = fields.slice(11, 15).map(Number);
  return { own: (utime + stime) / TICKS_A_SECOND, children: (cutime + cstime) / TICKS_A_SECOND };
}

/** Undefined if no process with this id is there. */
export function secondsOf(pid: number): number | undefined {
  try {
    const { own, children } = secondsOfProcess(readFileSync(`/proc/${pid}/stat`, 'utf8'));
    return own + children;
  } catch {
    return undefined;
  }
}

/** @param path a file with a `FileProfile` a line. None if no test ran. */
export function readProfile(path: string): FileProfile[] {
  try {
    const lines = readFileSync(path, 'utf8').split('\n');
    return lines.filter(Boolean).map((text) => JSON.parse(text) as FileProfile);
  } catch {
    return [];
  }
}

const NUMBERS = ['own', 'children', 'taken', 'services', 'databases', 'processes', 'browsers'] as const;

/** Wide enough for each number's name. */
const WIDTH = 10;

/** The dearest first. `servers`: seconds of processor time of what all files share, by name. */
export function profileTable(
  files: readonly FileProfile[],
  servers: Readonly<Record<string, number>> = {},
): string[] {
  const folders = Map.groupBy(files, ({ file }) => dirname(file));
  const sums = [...folders].map(([folder, inIt]) => sum(`${folder}/`, inIt));
  return [
    row('processor seconds by file', ['all', ...NUMBERS]),
    ...files.toSorted(dearestFirst).map(rowOf),
    '',
    row('by folder', ['all', ...NUMBERS]),
    ...sums.toSorted(dearestFirst).map(rowOf),
    '',
    rowOf(sum(`${files.length} files`, files)),
    ...Object.entries(servers).map(([name, seconds]) => row(name, [seconds.toFixed(1)])),
  ];
}

const costOf = ({ own, children }: FileProfile) => own + children;

const dearestFirst = (a: FileProfile, b: FileProfile) => costOf(b) - costOf(a);

function sum(name: string, files: readonly FileProfile[]): FileProfile {
  const total = (key: (typeof NUMBERS)[number]) => files.reduce((all, file) => all + file[key], 0);
  return {
    file: name,
    own: total('own'),
    children: total('children'),
    taken: total('taken'),
    services: total('services'),
    databases: total('databases'),
    processes: total('processes'),
    browsers: total('browsers'),
  };
}

function rowOf(file: FileProfile): string {
  const numbers = NUMBERS.map((key) =>
    key === 'own' || key === 'children' || key === 'taken' ? file[key].toFixed(1) : String(file[key]),
  );
  return row(file.file, [costOf(file).toFixed(1), ...numbers]);
}

function row(name: string, cells: readonly string[]): string {
  return `${cells.map((cell) => cell.padStart(WIDTH)).join('')}  ${name}`;
}
