// `tallyhook quarantine discard`: deliveries that nobody will release are given up, with a note that says why.

import type { Env } from '../config.ts';
import { UsageError } from '../errors.ts';
import { type Answers, ApiAnswerError, LISTS } from '../operators/client/index.ts';
import { type Api, openApi } from './api.ts';
import { FLAG, parse, TEXT } from './arguments.ts';
import { CONFIRM_OPTIONS, requireSomebody } from './ask.ts';
import { colourOf, COLUMNS } from './columns.ts';
import { filterOptions, type FilterQuery, filtersOf, readFilters } from './filters.ts';
import { type Order, runOrder, takePages, totalOf } from './order.ts';
import { type Io, toJson } from './io.ts';
import { counted } from './readable.ts';

const { state: _state, released: _released, ...orderFilters } = LISTS.quarantine.filters;
/** Of the actions on all that wait. */
export const ORDER_FILTERS = filtersOf(orderFilters);
export type OrderFilter = FilterQuery<(typeof ORDER_FILTERS)[number]>;

/** Each is a request of its own. */
const IDS_MAX = 100;

export const discardHelp = `  quarantine discard ID… --note TEXT
                        give up these, at most ${IDS_MAX}, for good: they no longer wait, and cannot be released any more;
                        they stay in "deliveries list", with their bodies, for the usual time. The note says why
  quarantine discard --all --note TEXT
                        all that wait, or some of them, with the filters of "release --all"; it shows them and asks
    --dry-run             only count them and show some
    --yes                 do not ask`;

const OPTIONS = { ...filterOptions(ORDER_FILTERS), ...CONFIRM_OPTIONS, all: FLAG, note: TEXT } as const;

export async function discard(args: string[], env: Env, io: Io): Promise<number> {
  const { values, positionals: ids } = parse(args, OPTIONS, IDS_MAX);
  const filter = readFilters(ORDER_FILTERS, values);
  const { note, 'dry-run': isDry } = values;
  if (values.all === true) {
    if (ids.length > 0) throw new UsageError('ids and --all exclude each other');
    const reason = isDry === true ? '' : requireNote(note);
    requireSomebody(io, values, 'discarded');
    return runOrder(
      io,
      values,
      COLUMNS.quarantine,
      discardAll(io, openApi(env, io), { filter, note: reason }),
    );
  }
  if (Object.keys(filter).length > 0) throw new UsageError('filters go with --all');
  if (isDry === true) throw new UsageError('--dry-run goes with --all');
  if (ids.length === 0) throw new UsageError('the ids of deliveries, or --all, are missing');
  return discardEach(io, openApi(env, io), { ids, note: requireNote(note) });
}

function requireNote(note: string | undefined): string {
  if (note === undefined) throw new UsageError('--note TEXT is missing: say why you discard them');
  if (note.trim() === '') throw new UsageError('--note TEXT is empty: say why you discard them');
  return note;
}

/** One that cannot be discarded does not keep back the others. Exit code 1 if there was one. */
async function discardEach(
  io: Io,
  { client, nextKey }: Api,
  { ids, note }: { ids: readonly string[]; note: string },
): Promise<number> {
  let failures = 0;
  for (const id of ids) {
    try {
      const delivery = await client.discard(id, note, nextKey());
      if (io.stdout.isTTY) io.say(`${io.paint(colourOf('discarded') ?? 'bold', 'discarded')} ${id}`);
      else await io.putJson(delivery);
    } catch (error) {
      if (!(error instanceof ApiAnswerError && [404, 409].includes(error.httpStatus))) throw error;
      io.complain(`${id}: ${error.message}`);
      failures += 1;
    }
  }
  return failures === 0 ? 0 : 1;
}

/** Of those that wait in quarantine. */
export const NOTHING = 'nothing that matches waits in quarantine';

const discardAll = (
  io: Io,
  { client, nextKey }: Api,
  { filter, note }: { filter: OrderFilter; note: string },
): Order<Answers['quarantinePreview']> => ({
  find: () => client.tryDiscard({ filter }, nextKey()),
  noun: 'delivery',
  none: { text: NOTHING, exitCode: 1 },
  question: (amount) => `Discard ${amount} for good?`,
  past: 'discarded',
  carryOut: async (found) => {
    const pages = client.discardMany({ filter: { ...filter, to: found.to }, note }, nextKey);
    const done = await takePages(io, pages, {
      unit: 'deliveries',
      total: totalOf(found),
      take: ({ discarded }) => discarded,
    });
    io.say(io.stdout.isTTY ? `${counted(done, 'delivery')} discarded` : toJson({ discarded: done }));
    return done > 0 ? 0 : 1;
  },
});
