// `tallyhook deliveries diff`: what a conflicting delivery says otherwise than the event.

import type { Env } from '../../config.ts';
import { argumentOf, parse } from '../../terminal/arguments.ts';
import type { Io } from '../../terminal/io.ts';
import { printTable } from '../../terminal/listing.ts';
import { clean, time } from '../../terminal/readable.ts';
import type { Column } from '../../terminal/table.ts';
import type { Answers } from '../client/index.ts';
import { openApi } from '../kernel/api.command.ts';
import { colourOf } from '../kernel/list/looks.command.ts';

type Difference = Answers['difference'];
export type FieldDifference = Difference['differences'][number];

export async function diff(args: string[], env: Env, io: Io): Promise<number> {
  const id = argumentOf(parse(args, {}, 1).positionals, 'the id of a delivery');
  const found = await openApi(env, io).client.difference(id);
  if (!io.stdout.isTTY) {
    await io.putJson(found);
    return 0;
  }
  await io.put(`${heading(io, found)}\n\n`);
  if (found.differences.length > 0) await printTable(io, found.differences, DIFFERENCES);
  else io.complain('the two bodies have the same content');
  if (found.has_more) io.complain(`these are the first ${found.differences.length}; there are more`);
  return 0;
}

function heading({ paint }: Io, { event, first_delivery: first, delivery }: Difference): string {
  const line = (what: string, { id, received_at: at }: Difference['delivery']) =>
    `${what} ${clean(id)}, received ${time(at)} UTC`;
  return [
    `${paint('bold', clean(event.id))} and a ${paint(colourOf('conflict') ?? 'bold', 'conflict')} with it`,
    line('event:    delivery', first),
    line('conflict: delivery', delivery),
  ].join('\n');
}

const shown = (text: string | null, isCut: boolean) => (isCut ? `${text} (cut)` : (text ?? '(not there)'));

export const DIFFERENCES: readonly Column<FieldDifference>[] = [
  { head: 'field', text: ({ path, cut }) => shown(path, cut.includes('path')), wrapTo: 16 },
  { head: 'in the event', text: ({ event, cut }) => shown(event, cut.includes('event')), wrapTo: 20 },
  {
    head: 'in this delivery',
    text: ({ delivery, cut }) => shown(delivery, cut.includes('delivery')),
    wrapTo: 20,
    colour: () => 'yellow',
  },
];
