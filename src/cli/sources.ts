// `tallyhook sources`: who sends, how much, signed with which secret, what they send that we do not know, and who knocks.

import type { Env } from '../config.ts';
import type { Source } from '../operators/client/index.ts';
import { openApi } from './api.ts';
import { parse } from './arguments.ts';
import type { Command } from './command.ts';
import { complain, paint, putJson, say } from './output.ts';
import { ago, count, time } from './readable.ts';
import { type Column, renderTable, terminalWidth } from './table.ts';

const help = `Who sends, how much, signed with which secret, and what they send that we do not know.

  sources

A secret that was not matched for as long as your senders may be silent can be dropped. "drift" are fields and statuses
that the schemas do not know, with the newest delivery that had them. "refused" are the busiest addresses whose deliveries
were refused in the last 24 hours.`;

type Row<K extends 'secrets' | 'drift' | 'busiest_refused_addresses'> = {
  readonly of: string;
} & Source[K][number];

async function run(args: string[], env: Env): Promise<number> {
  parse(args, {});
  const sources = await openApi(env).client.sources();
  if (!process.stdout.isTTY) {
    for (const source of sources) await putJson(source);
    return 0;
  }
  if (sources.length === 0) complain('nobody has sent anything yet');
  const width = terminalWidth();
  say(renderTable(sources, SOURCES, { width }));
  const secrets = sources.flatMap((source) => source.secrets.map((item) => ({ of: source.source, ...item })));
  if (secrets.length > 0) say(`\n${paint('bold', 'secrets')}\n${renderTable(secrets, SECRETS, { width })}`);
  const drift = sources.flatMap((source) => source.drift.map((item) => ({ of: source.source, ...item })));
  if (drift.length > 0) say(`\n${paint('bold', 'drift')}\n${renderTable(drift, DRIFT, { width })}`);
  const refused = sources.flatMap((source) =>
    source.busiest_refused_addresses.map((item) => ({ of: source.source, ...item })),
  );
  if (refused.length > 0) say(`\n${paint('bold', 'refused')}\n${renderTable(refused, REFUSED, { width })}`);
  return 0;
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

const SECRETS: readonly Column<Row<'secrets'>>[] = [
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

const DRIFT: readonly Column<Row<'drift'>>[] = [
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

const REFUSED: readonly Column<Row<'busiest_refused_addresses'>>[] = [
  { head: 'source', text: (item) => item.of },
  { head: 'from', text: (item) => item.address },
  { head: 'times', text: (item) => count(item.count), right: true },
];

export const sources: Command = { help, run };
