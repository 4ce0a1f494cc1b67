// Reads what processes use from /proc: the CPU time of a process with all its children (also ended ones that were waited for),
// and its peak memory. On Linux only; elsewhere everything is unknown.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';

/** USER_HZ: 100 on every Linux that Node runs on. */
const TICKS_PER_S = 100;

type Stat = { readonly pid: number; readonly parent: number; readonly cpuTicks: number };

/** CPU seconds so far of each root with its children. */
export function cpuSecondsOf<Role extends string>(
  roots: Readonly<Record<Role, readonly number[]>>,
): Record<Role, number> {
  const stats = readStats();
  const entries = Object.entries<readonly number[]>(roots).map(([role, pids]) => {
    const tree = pids.flatMap((pid) => treeOf(pid, stats));
    return [role, tree.reduce((sum, { cpuTicks }) => sum + cpuTicks, 0) / TICKS_PER_S];
  });
  return Object.fromEntries(entries) as Record<Role, number>;
}

type Memory = { readonly nowMiB: number; readonly peakMiB: number };

/** The sum of the resident memory of the roots with their children. */
export function memoryOf(pids: readonly number[]): Memory {
  const stats = readStats();
  const statuses = pids
    .flatMap((pid) => treeOf(pid, stats))
    .map(({ pid }) => readText(`/proc/${pid}/status`));
  const sum = (name: string) =>
    statuses.reduce((kib, text) => kib + Number(new RegExp(`${name}:\\s+(\\d+)`).exec(text)?.[1] ?? 0), 0);
  return { nowMiB: sum('VmRSS') / 1_024, peakMiB: sum('VmHWM') / 1_024 };
}

/** Sets the peak to their present memory (proc(5), clear_refs). */
export function resetPeak(pids: readonly number[]): void {
  const stats = readStats();
  for (const { pid } of pids.flatMap((root) => treeOf(root, stats)))
    writeFileSync(`/proc/${pid}/clear_refs`, '5');
}

/** Core seconds that the whole machine has used so far. What others took from a virtual one counts, since it was not free. */
export function machineBusySeconds(): number {
  const [, ...fields] = readText('/proc/stat').split('\n', 1)[0]?.split(/\s+/) ?? [];
  const [user = 0, nice = 0, system = 0, , , irq = 0, softIrq = 0, stolen = 0] = fields.map(Number);
  return (user + nice + system + irq + softIrq + stolen) / TICKS_PER_S;
}

function treeOf(root: number, stats: ReadonlyMap<number, Stat>): Stat[] {
  const found: Stat[] = [];
  const own = stats.get(root);
  if (own !== undefined) found.push(own);
  for (const { pid, parent } of stats.values()) if (parent === root) found.push(...treeOf(pid, stats));
  return found;
}

function readStats(): Map<number, Stat> {
  const stats = new Map<number, Stat>();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const text = readText(`/proc/${name}/stat`);
    if (text !== '') stats.set(Number(name), parseStat(Number(name), text));
  }
  return stats;
}

/** The process name is in parentheses and may contain any character, so fields are counted after the last parenthesis. */
export function parseStat(pid: number, text: string): Stat {
  const fields = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number);
  const [user, system, childrenUser, childrenSystem] = fields.slice(11, 15);
  const cpuTicks = (user ?? 0) + (system ?? 0) + (childrenUser ?? 0) + (childrenSystem ?? 0);
  return { pid, parent: fields[1] ?? 0, cpuTicks };
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // It ended at this moment.
    return '';
  }
}
