// What this replica alone knows, and nothing in the database tells: its way to the broker and to Postgres, and what its counters have
// counted. For each sign it remembers when it was last so, and of states also for how long. Asks nobody who is not asked anyway.

import type { COUNTERS as METRICS } from '../base/metric-table.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Signs } from '../ledger/index.ts';

export type ReplicaStates = {
  readonly broker: () => { readonly connected: boolean; readonly blocked: boolean };
  /** Whether Postgres takes deliveries. */
  readonly takesDeliveries: () => Promise<boolean>;
};

/** What went away and came back within so many samples was away all the time. So was what no sample saw back in between. */
const SAMPLES_BETWEEN = 3;
/** Longer than any condition looks back. */
const FORGET_S = 3_600;

/** A sign of each counter: it is so when the counter has grown. */
const COUNTERS: readonly {
  readonly sign: string;
  readonly metric: keyof typeof METRICS;
  readonly where?: Readonly<Record<string, readonly string[]>>;
}[] = [
  { sign: 'disk-full', metric: 'tallyhook_database_refusals_total', where: { kind: ['disk_full'] } },
  {
    sign: 'starved-pool',
    metric: 'tallyhook_database_sessions_refused_total',
    where: { reason: ['starved'] },
  },
  {
    sign: 'connections-dropped',
    metric: 'tallyhook_connections_ended_total',
    where: { reason: ['address', 'full', 'room'] },
  },
  { sign: 'log-dropped', metric: 'tallyhook_log_lines_dropped_total' },
];

type Run = { readonly firstMs: number; readonly lastMs: number; isOver: boolean };

export type SignsMemory = {
  /** One sample of everything. Never rejects. */
  readonly sample: () => Promise<void>;
  /** Something was so at this moment. */
  readonly note: (sign: 'postgres-away') => void;
  readonly read: () => Signs;
};

export function createSigns(options: {
  readonly metrics: Pick<Metrics, 'registry'>;
  readonly states: ReplicaStates;
  readonly sampleMs: number;
  /** Monotonic milliseconds. */
  readonly now: () => number;
}): SignsMemory {
  const { metrics, states, sampleMs, now } = options;
  const runs = new Map<string, Run>();
  const totals = new Map<string, number>();
  let isPostgresAway = false;

  function note(sign: string): void {
    const atMs = now();
    const run = runs.get(sign);
    const goesOn = run !== undefined && (!run.isOver || atMs - run.lastMs <= SAMPLES_BETWEEN * sampleMs);
    runs.set(sign, { firstMs: goesOn ? run.firstMs : atMs, lastMs: atMs, isOver: false });
  }

  function noteState(sign: string, isSo: boolean): void {
    const run = runs.get(sign);
    if (isSo) note(sign);
    else if (run !== undefined) run.isOver = true;
  }

  function noteStates(): void {
    const { connected, blocked } = states.broker();
    noteState('broker-away', !connected || blocked);
    noteState('broker-blocked', blocked);
    noteState('postgres-away', isPostgresAway);
  }

  async function countersGrew(): Promise<void> {
    for (const counter of COUNTERS) {
      const { sign } = counter;
      const total = await totalOf(metrics.registry, counter);
      if (total > (totals.get(sign) ?? 0)) note(sign);
      totals.set(sign, total);
    }
  }

  return {
    sample: async () => {
      const takesDeliveries = await states.takesDeliveries().catch(() => false);
      // The last moment of an outage is when it is seen that it is over.
      if (isPostgresAway && takesDeliveries) note('postgres-away');
      isPostgresAway = !takesDeliveries;
      noteStates();
      await countersGrew();
    },
    note,
    read: () => {
      noteStates();
      const signs: Record<string, number> = {};
      for (const [sign, { firstMs, lastMs }] of runs) {
        const agoS = (now() - lastMs) / 1_000;
        if (agoS > FORGET_S) continue;
        signs[sign] = rounded(agoS);
        if (isState(sign)) signs[`${sign}-for`] = rounded((lastMs - firstMs) / 1_000);
      }
      return signs;
    },
  };
}

const isState = (sign: string) => ['broker-away', 'broker-blocked', 'postgres-away'].includes(sign);

const rounded = (seconds: number) => Math.round(seconds * 10) / 10;

async function totalOf(
  registry: Metrics['registry'],
  { metric, where = {} }: (typeof COUNTERS)[number],
): Promise<number> {
  const { values = [] } = (await registry.getSingleMetric(metric)?.get()) ?? {};
  return values
    .filter(({ labels }) => {
      const given = labels as Readonly<Record<string, string | number | undefined>>;
      return Object.entries(where).every(([label, wanted]) => wanted.includes(String(given[label])));
    })
    .reduce((sum, { value }) => sum + value, 0);
}
