// `tallyhook sources`: who sends, how much, with which secret, what the schemas do not know of it, and who is refused.

import type { Env } from '../../config.ts';
import { parse } from '../../terminal/arguments.ts';
import type { Command } from '../../terminal/command.ts';
import type { Io } from '../../terminal/io.ts';
import { printTable } from '../../terminal/listing.ts';
import { ago, count } from '../../terminal/readable.ts';
import type { Column } from '../../terminal/table.ts';
import type { Answers } from '../client/index.ts';
import { outcomeWord } from '../kernel/list/fields.contract.ts';
import { openApi } from '../kernel/api.command.ts';
import { idColumn, nameColumn, numberColumn, timeColumn } from '../kernel/list/looks.command.ts';

const help = `Who sends, how much, with which secret, and which fields and statuses are unknown.

  sources

You can remove a secret that has not matched for longer than your senders' longest pause. "drift" are fields and statuses
that the schemas do not know, with the newest delivery that had them. "refused or unauthorized"
are the addresses with the most such deliveries in the last 24 hours.`;

type Source = Answers['sources']['items'][number];
/** One of several things of a source. */
type Row<Part> = Part & { readonly of: string };

async function run(args: string[], env: Env, io: Io): Promise<number> {
  parse(args, {});
  const sources = await openApi(env, io).client.sources();
  if (!io.stdout.isTTY) {
    for (const source of sources) await io.putJson(source);
    return 0;
  }
  if (sources.length === 0) io.complain('nobody has sent anything yet');
  await printTable(io, sources, SOURCES);
  await printParts(
    io,
    'secrets',
    rowsOf(sources, ({ secrets }) => secrets),
    SECRETS,
  );
  await printParts(
    io,
    'drift',
    rowsOf(sources, ({ drift }) => drift),
    DRIFT,
  );
  await printParts(
    io,
    'refused or unauthorized',
    rowsOf(sources, (source) => source.busiest_refused_addresses ?? []),
    REFUSED,
  );
  return 0;
}

function rowsOf<Part>(sources: readonly Source[], partsOf: (source: Source) => readonly Part[]): Row<Part>[] {
  return sources.flatMap((source) => partsOf(source).map((part) => ({ ...part, of: source.source })));
}

async function printParts<T>(
  io: Io,
  title: string,
  rows: readonly T[],
  columns: readonly Column<T>[],
): Promise<void> {
  if (rows.length === 0) return;
  await io.put(`\n${io.paint('bold', title)}\n`);
  await printTable(io, rows, columns);
}

const rate = (value: number) =>
  value === 0 ? '0' : value < 10 ? value.toFixed(2) : count(Math.round(value));

export const SOURCES: readonly Column<Source>[] = [
  nameColumn('source', (item) => item.source),
  {
    head: '',
    text: (item) => (item.configured ? '' : 'not configured'),
    brief: (item) => (item.configured ? '' : 'not set up'),
    colour: () => 'yellow',
  },
  numberColumn('last delivery', (item) => ago(item.last_delivery_at)),
  numberColumn('a minute: 5 min', ({ rates }) => rate(rates.last_5m)),
  numberColumn('last hour', ({ rates }) => rate(rates.last_1h)),
  numberColumn('last day', ({ rates }) => rate(rates.last_24h)),
  {
    head: 'errors, 24 h',
    text: ({ errors_24h: errors = {} }) =>
      Object.entries(errors)
        .map(([outcome, times]) => `${count(Number(times))} ${outcomeWord(outcome, Number(times))}`)
        .join(', '),
    drop: true,
  },
];

export const SECRETS: readonly Column<Row<Source['secrets'][number]>>[] = [
  nameColumn('source', (item) => item.of),
  { head: 'fingerprint', text: (item) => item.fingerprint },
  {
    head: 'configured',
    text: (item) => (item.configured ? 'yes' : 'no'),
    colour: (item) => (item.configured ? undefined : 'dim'),
  },
  numberColumn('last matched', (item) => ago(item.last_matched_at)),
  timeColumn('(UTC)', (item) => item.last_matched_at),
];

export const DRIFT: readonly Column<Row<Source['drift'][number]>>[] = [
  nameColumn('source', (item) => item.of),
  { head: 'unknown', text: (item) => item.kind },
  { head: 'name', text: (item) => item.name, wrapTo: 12 },
  { head: 'in', text: (item) => item.status, wrapTo: 10 },
  { head: 'type', text: (item) => item.value_type, drop: true },
  numberColumn('times', (item) => count(item.count)),
  { ...timeColumn('first seen (UTC)', (item) => item.first_seen_at), drop: true },
  numberColumn('last', (item) => ago(item.last_seen_at)),
  { ...idColumn('sample', (item) => item.sample_delivery_id), below: 'last' },
];

export const REFUSED: readonly Column<Row<NonNullable<Source['busiest_refused_addresses']>[number]>>[] = [
  nameColumn('source', (item) => item.of),
  { head: 'from', text: (item) => item.address },
  numberColumn('times', (item) => count(item.count)),
];

export const sources: Command = { help, run };
