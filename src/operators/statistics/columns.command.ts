// The tables of `tallyhook stats`. Outcomes and results that are the normal case have a column of their own; all others
// share one, since most of them are 0 and all of them would be wider than a terminal.

import { count, duration, time } from '../../terminal/readable.ts';
import type { Column } from '../../terminal/table.ts';
import type { Answers } from '../client/index.ts';
import { outcomeWord } from '../kernel/list/fields.contract.ts';
import { colourOf, nameColumn, numberColumn, textColumn } from '../kernel/list/looks.command.ts';

type Stats = Answers['stats'];
type Item = Stats['items'][number];
type Counts = Readonly<Record<string, number>>;
type Times = Item['answer_ms'];

/** A step is whole minutes. */
const atColumn: Column<Item> = { head: 'at (UTC)', text: ({ at }) => time(at).slice(0, 16) };
const sourceColumn = nameColumn<Item>('source', (item) => item.source);

const ofOutcome = (name: string, countsOf: (item: Item) => Counts): Column<Item> => ({
  ...numberColumn(name, (item) => count(countsOf(item)[name] ?? 0)),
  colour: (item) => ((countsOf(item)[name] ?? 0) > 0 ? colourOf(name) : 'dim'),
});

/** `2 unauthorized, 1 malformed`, the most frequent first. */
const listed = (counts: Counts, without?: string): string =>
  Object.entries(counts)
    .filter(([name, number]) => number > 0 && name !== without)
    .toSorted(([, a], [, b]) => b - a)
    .map(([name, number]) => `${count(number)} ${outcomeWord(name, number)}`)
    .join(', ');

const others = (of: (item: Item) => Counts, without: string): Column<Item> => ({
  ...textColumn<Item>('others', (item) => listed(of(item), without)),
  colour: () => 'yellow',
});

const range = (found: Times) => (found === null ? '' : `${duration(found.p50)} / ${duration(found.p99)}`);

/** `usual`: the normal case. `head`: of the times. */
const columnsOf = (
  countsOf: (item: Item) => Counts,
  usual: string,
  head: string,
  timesOf: (item: Item) => Times,
): readonly Column<Item>[] => [
  atColumn,
  sourceColumn,
  ofOutcome(usual, countsOf),
  numberColumn(head, (item) => range(timesOf(item))),
  others(countsOf, usual),
];

export const DELIVERIES = columnsOf(
  (item) => item.deliveries,
  'accepted',
  'answer p50 / p99',
  (item) => item.answer_ms,
);

export const PUBLICATIONS = columnsOf(
  (item) => item.publications,
  'confirmed',
  'lag p50 / p99',
  (item) => item.lag_ms,
);

export const hasPublications = ({ publications }: Item): boolean =>
  Object.values(publications).some((number) => number > 0);

type Waits = NonNullable<Stats['waits']>[number];

const waiting = (kind: 'pending' | 'returned' | 'parked' | 'quarantined'): Column<Waits> => ({
  ...numberColumn<Waits>(kind, (item) => count(item[kind])),
  colour: (item) => (item[kind] > 0 ? colourOf(kind) : 'dim'),
});

export const WAITS: readonly Column<Waits>[] = [
  { head: 'at (UTC)', text: ({ at }) => time(at).slice(0, 16) },
  waiting('pending'),
  numberColumn('oldest', (item) =>
    item.oldest_pending_s === 0 ? '' : duration(item.oldest_pending_s * 1_000),
  ),
  waiting('returned'),
  waiting('parked'),
  waiting('quarantined'),
];

type Row = {
  readonly what: string;
  readonly counts: Counts;
  readonly measure: string;
  readonly times: Times;
};

export const totalRows = (total: NonNullable<Stats['total']>): readonly Row[] => [
  { what: 'deliveries', counts: total.deliveries, measure: 'answer', times: total.answer_ms },
  { what: 'publications', counts: total.publications, measure: 'lag', times: total.lag_ms },
];

const percentileColumn = (name: 'p50' | 'p90' | 'p99'): Column<Row> =>
  numberColumn(name, ({ times }) => (times === null ? '' : duration(times[name])));

export const TOTAL: readonly Column<Row>[] = [
  { head: '', text: ({ what }) => what },
  { head: '', text: ({ measure, times }) => (times === null ? '' : measure) },
  percentileColumn('p50'),
  percentileColumn('p90'),
  percentileColumn('p99'),
  { head: 'how many', text: ({ counts }) => listed(counts) || 'none', wrapTo: 24 },
];
