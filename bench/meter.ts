// Measures what a run costs for each of its events: the CPU time of each process and the WAL from the start of the window to the end
// of the drain, and the growth of the tables over the whole run.

import type { Figures } from './results.ts';
import type { Stage } from './stage.ts';
import { openStorage } from './storage.ts';
import { cpuSecondsOf } from './usage.ts';

export type Cost = Pick<Figures, 'cpuMsPer1000' | 'walBytesPerEvent' | 'diskBytesPerEvent'>;

export type Meter = AsyncDisposable & {
  /** The window begins. */
  readonly begin: () => Promise<void>;
  /** Everything has arrived: so many events since the beginning of the window, and since the meter was made. */
  readonly end: (events: { window: number; inAll: number }) => Promise<Cost>;
};

/** The processes of each role, besides the servers'. `database`: the one whose growth is measured; none without it. */
export async function createMeter(
  stage: Stage,
  options: { roles: Readonly<Record<string, readonly number[]>>; database?: string | undefined },
): Promise<Meter> {
  const roots: Record<string, readonly number[]> = {
    ...options.roles,
    postgres: [stage.postgres.pid],
    rabbitmq: [stage.rabbitmq.pid],
  };
  const storage = options.database === undefined ? undefined : await openStorage(stage, options.database);
  const tablesBefore = await storage?.tableBytes();
  let cpuBefore: Record<string, number> = {};
  let walBefore: number | undefined;

  async function begin(): Promise<void> {
    cpuBefore = cpuSecondsOf(roots);
    walBefore = await storage?.walBytes();
  }

  async function end({ window, inAll }: { window: number; inAll: number }): Promise<Cost> {
    const used = Object.entries<number>(cpuSecondsOf(roots)).map(([role, seconds]) => [
      role,
      perEvent((seconds - (cpuBefore[role] ?? 0)) * 1_000_000, window),
    ]);
    const walAfter = await storage?.walBytes();
    const tablesAfter = await storage?.tableBytes();
    return {
      cpuMsPer1000: Object.fromEntries(used) as Record<string, number>,
      ...grown('walBytesPerEvent', { before: walBefore, after: walAfter, events: window }),
      ...grown('diskBytesPerEvent', { before: tablesBefore, after: tablesAfter, events: inAll }),
    };
  }

  return { begin, end, [Symbol.asyncDispose]: async () => storage?.end() };
}

const perEvent = (amount: number, events: number) => amount / Math.max(1, events);

function grown<Name extends string>(
  name: Name,
  { before, after, events }: { before: number | undefined; after: number | undefined; events: number },
): { readonly [N in Name]?: number } {
  if (before === undefined || after === undefined) return {};
  return { [name]: perEvent(after - before, events) } as { readonly [N in Name]: number };
}
