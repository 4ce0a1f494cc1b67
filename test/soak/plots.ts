// The plots of a soak, from its record alone. Faults are bands; a missing sample is a gap.

import { type Band, type LineSeries, linePlot } from '../../bench/plots.ts';
import type { ReplicaSample, Sample, SoakRecord, TableSample } from './record.ts';
import { bytesOf, isLedgerTable, perEvent, tablesIn } from './verdict.ts';

const MIB = 1024 * 1024;

/** File name to SVG. */
export function plotsOf(record: SoakRecord): Map<string, string> {
  const { samples, faults } = record;
  const bands: Band[] = faults.map(({ fromS, toS }) => ({ from: fromS / 60, to: toS / 60 }));
  const x = { name: 'time', unit: 'min', min: 0, max: Math.ceil((samples.at(-1)?.atS ?? 60) / 60) };
  const plot = (title: string, y: { name: string; unit?: string; scale?: 'log' }, series: LineSeries[]) =>
    linePlot({ title, x, y: y.scale === 'log' ? y : { ...y, min: 0 }, series, bands });
  return new Map([
    ['soak-memory.svg', plot('Memory of the replicas', { name: 'memory', unit: 'MiB' }, memory(samples))],
    [
      'soak-handles.svg',
      plot('Open descriptors and connections', { name: 'number' }, handlesAndConnections(samples)),
    ],
    ['soak-tables.svg', plot('Tables with their indexes', { name: 'size', unit: 'MiB' }, tables(samples))],
    [
      'soak-bytes-per-event.svg',
      plot(
        'The ledger’s size by event',
        { name: 'table and indexes', unit: 'bytes/event' },
        perEvents(samples),
      ),
    ],
    ['soak-dead-rows.svg', plot('Dead rows', { name: 'dead rows' }, deadRows(samples))],
    ['soak-outbox.svg', plot('Outbox', { name: 'entries' }, outbox(samples))],
    ['soak-rates.svg', plot('Answers and events', { name: 'rate', unit: '1/s' }, rates(samples))],
    [
      'soak-latency.svg',
      plot('Time to the answer', { name: 'time', unit: 'ms', scale: 'log' }, latency(samples)),
    ],
  ]);
}

function line(
  samples: readonly Sample[],
  name: string,
  read: (sample: Sample) => number | null | undefined,
): LineSeries {
  return { name, points: samples.map((sample) => [sample.atS / 60, read(sample) ?? null]) };
}

function byReplica(
  samples: readonly Sample[],
  what: string,
  read: (replica: ReplicaSample) => number | null,
): LineSeries[] {
  const names = [...new Set(samples.flatMap(({ replicas }) => Object.keys(replicas)))].toSorted();
  return names.map((name) =>
    line(samples, `${name}${what}`, ({ replicas }) => {
      const replica = replicas[name];
      return replica ? read(replica) : null;
    }),
  );
}

const inMib = (bytes: number | null) => (bytes === null ? null : bytes / MIB);

function memory(samples: readonly Sample[]): LineSeries[] {
  const heap = byReplica(samples, ': heap in use', ({ heapBytes }) => inMib(heapBytes));
  return [
    ...byReplica(samples, ': resident', ({ rssBytes }) => inMib(rssBytes)),
    ...heap.map((series) => ({ ...series, dashed: true })),
  ];
}

const atPostgres = ({ postgres }: Sample) =>
  postgres && Object.values(postgres.connections).reduce((sum, count) => sum + count, 0);

function handlesAndConnections(samples: readonly Sample[]): LineSeries[] {
  return [
    ...byReplica(samples, ': descriptors', ({ fds }) => fds),
    ...byReplica(samples, ': handles', ({ handles }) => handles),
    line(samples, 'connections at Postgres', atPostgres),
    line(samples, 'connections at RabbitMQ', ({ broker }) => broker.connections),
  ];
}

function byTable(
  samples: readonly Sample[],
  read: (table: TableSample, sample: Sample) => number | null,
  isWanted: (name: string) => boolean = () => true,
): LineSeries[] {
  return tablesIn(samples)
    .filter(isWanted)
    .map((name) =>
      line(samples, name, (sample) => {
        const table = sample.postgres?.tables[name];
        return table === undefined ? null : read(table, sample);
      }),
    );
}

const tables = (samples: readonly Sample[]) => byTable(samples, (table) => inMib(bytesOf(table)));
const deadRows = (samples: readonly Sample[]) => byTable(samples, ({ dead }) => dead);
const perEvents = (samples: readonly Sample[]) =>
  byTable(samples, (table, sample) => perEvent(bytesOf(table), sample), isLedgerTable);

function outbox(samples: readonly Sample[]): LineSeries[] {
  return ['pending', 'returned', 'parked'].map((state) =>
    line(samples, state, ({ postgres }) => (postgres ? (postgres.outbox[state] ?? 0) : null)),
  );
}

/** Rates between consecutive samples. */
function rates(samples: readonly Sample[]): LineSeries[] {
  const rate = (name: string, read: (sample: Sample) => number | undefined): LineSeries => ({
    name,
    points: samples.slice(1).map((sample, index) => {
      const before = samples[index];
      const [from, to] = [before && read(before), read(sample)];
      const seconds = sample.atS - (before?.atS ?? 0);
      return [sample.atS / 60, from === undefined || to === undefined ? null : (to - from) / seconds];
    }),
  });
  return [
    rate(
      'answers 2xx',
      answers((status) => status.startsWith('2')),
    ),
    rate(
      '503, lost or late',
      answers((status) => /^(5\d\d|lost|late)$/.test(status)),
    ),
    rate('received by the subscriber', ({ subscriber }) => subscriber?.received),
  ];
}

/** How many answers had one of these statuses, since the start. */
function answers(isWanted: (status: string) => boolean): (sample: Sample) => number | undefined {
  return ({ sender }) =>
    sender === null
      ? undefined
      : Object.entries(sender.answers).reduce(
          (sum, [status, count]) => sum + (isWanted(status) ? count : 0),
          0,
        );
}

// Zero means that nothing was answered.
const time = (of: 'p50Ms' | 'p99Ms' | 'maxMs') => (sample: Sample) => sample.sender?.[of] || null;

function latency(samples: readonly Sample[]): LineSeries[] {
  return [
    line(samples, 'p50', time('p50Ms')),
    line(samples, 'p99', time('p99Ms')),
    line(samples, 'longest', time('maxMs')),
  ];
}
