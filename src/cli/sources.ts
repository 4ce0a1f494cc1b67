// `tallyhook sources`: who sends, how much, with which secret, what the schemas do not know of it, and who is refused.

import type { Env } from '../config.ts';
import type { Answers } from '../operators/client/index.ts';
import { openApi } from './api.ts';
import { parse } from './arguments.ts';
import type { Command } from './command.ts';
import { printTable } from './listing.ts';
import { complain, paint, put, putJson } from './output.ts';
import { ago, count, time } from './readable.ts';
import type { Column } from './table.ts';

const help = `Who sends, how much, with which secret, and which fields and statuses are unknown.

  sources

You can remove a secret that has not matched for longer than your senders are ever silent. "drift" are fields and statuses
that the schemas do not know, with the newest delivery that had them. "refused" are the busiest addresses whose deliveries
were refused in the last 24 hours.`;

type Source = Answers['sources']['items'][number];
/** One of several things of a source. */
type Row<Part> = Part & { readonly of: string };

async function run(args: string[], env: Env): Promise<number> {
  parse(args, {});
  const sources = await openApi(env).client.sources();
  if (!process.stdout.isTTY) {
    for (const source of sources) await putJson(source);
    return 0;
  }
  if (sources.length === 0) complain('nobody has sent anything yet');
  await printTable(sources, SOURCES);
  await printParts(
    'secrets',
    rowsOf(sources, ({ secrets }) => secrets),
    SECRETS,
  );
  await printParts(
    'drift',
    rowsOf(sources, ({ drift }) => drift),
    DRIFT,
  );
  await printParts(
    'refused',
    rowsOf(sources, (source) => source.busiest_refused_addresses ?? []),
    REFUSED,
  );
  return 0;
}

function rowsOf<Part>(sources: readonly Source[], partsOf: (source: Source) => readonly Part[]): Row<Part>[] {
  return sources.flatMap((source) => partsOf(source).map((part) => ({ ...part, of: source.source })));
}

async function printParts<T>(
  title: string,
  rows: readonly T[],
  columns: readonly Column<T>[],
): Promise<void> {
  if (rows.length === 0) return;
  await put(`\n${paint('bold', title)}\n`);
  await printTable(rows, columns);
}

const rate = (value: number) =>
  value === 0 ? '0' : value < 10 ? value.toFixed(2) : count(Math.round(value));

const SOURCES: readonly Column<Source>[] = [
  { head: 'source', text: (item) => item.source },
  { head: '', text: (item) => (item.configured ? '' : 'not configured'), colour: () => 'yellow' },
  { head: 'last delivery', text: (item) => ago(item.last_delivery_at), right: true },
  { head: 'a minute: last 5 min', text: ({ rates }) => rate(rates.last_5m), right: true },
  { head: 'last hour', text: ({ rates }) => rate(rates.last_1h), right: true },
  { head: 'last day', text: ({ rates }) => rate(rates.last_24h), right: true },
];

const SECRETS: readonly Column<Row<Source['secrets'][number]>>[] = [
  { head: 'source', text: (item) => item.of },
  { head: 'fingerprint', text: (item) => item.fingerprint },
  {
    head: 'configured',
    text: (item) => (item.configured ? 'yes' : 'no'),
    colour: (item) => (item.configured ? undefined : 'dim'),
  },
  { head: 'last matched', text: (item) => ago(item.last_matched_at), right: true },
  { head: '(UTC)', text: (item) => (item.last_matched_at === null ? '' : time(item.last_matched_at)) },
];

const DRIFT: readonly Column<Row<Source['drift'][number]>>[] = [
  { head: 'source', text: (item) => item.of },
  { head: 'unknown', text: (item) => item.kind },
  { head: 'name', text: (item) => item.name, cutTo: 12 },
  { head: 'in', text: (item) => item.status, cutTo: 10 },
  { head: 'type', text: (item) => item.value_type },
  { head: 'times', text: (item) => count(item.count), right: true },
  { head: 'first seen (UTC)', text: (item) => time(item.first_seen_at) },
  { head: 'last', text: (item) => ago(item.last_seen_at), right: true },
  { head: 'sample', text: (item) => item.sample_delivery_id, colour: () => 'dim' },
];

const REFUSED: readonly Column<Row<NonNullable<Source['busiest_refused_addresses']>[number]>>[] = [
  { head: 'source', text: (item) => item.of },
  { head: 'from', text: (item) => item.address },
  { head: 'times', text: (item) => count(item.count), right: true },
];

export const sources: Command = { help, run };
