// The verbs that decide on many things at once or on one: those that are named by their ids, without a question, or with --all
// those that match, after a preview and a question.

import { UsageError } from '../../../base/errors.ts';
import type { Env } from '../../../config.ts';
import { FLAG, parse, TEXT } from '../../../terminal/arguments.ts';
import { CONFIRM_OPTIONS, hasSomebody, requireSomebody } from '../../../terminal/ask.ts';
import type { Verb } from '../../../terminal/command.ts';
import { type Io, toJson } from '../../../terminal/io.ts';
import { clean, counted } from '../../../terminal/readable.ts';
import type { Column } from '../../../terminal/table.ts';
import type { Filters, Ordered, OrderName, OrderPreview } from '../../client/index.ts';
import { openApi } from '../api.command.ts';
import { filterOptions, orOf, readFilters } from '../list/filters.command.ts';
import { runOrder, takePages, totalOf, type Trial } from './order.command.ts';

/** What became of one: of an entry of the outbox, or of a delivery. */
export type Item = {
  readonly id?: string;
  readonly delivery_id?: string;
  readonly event_id: string | null;
  readonly result: string;
  /** Of an entry: the one in which it was. */
  readonly state?: string | null;
  readonly reason: string | null;
};
type Page = { readonly done: number; readonly items?: readonly Item[] | undefined };

export type OrderVerb<Name extends OrderName> = {
  readonly name: Name;
  /** What one is: `event`, and several are. */
  readonly noun: string;
  /** What an id does not name, if there is no such one. */
  readonly thing: string;
  readonly units: string;
  readonly columns: readonly Column<OrderPreview<Name>['sample'][number]>[];
  /** At most so many in one command. */
  readonly idsMax: number;
  readonly filters: Filters;
  /** What `--state` takes, without which there is no `--all`. */
  readonly states?: readonly string[];
  readonly needsNote?: true;
  /** Without a terminal to ask on, `--all` needs no `--yes`: nothing is lost by it. */
  readonly isHarmless?: true;
  /** What is missing without ids and `--all`, and what filters without `--all` are told. */
  readonly missing: string;
  readonly misplaced?: string;
  /** `Retry 3 events?` */
  readonly question: (amount: string) => string;
  /** `retried`; and as a sentence ends on a terminal: `put back to be published`. */
  readonly past: string;
  readonly done?: string;
  /** What it says if nothing matches, and the exit code then. */
  readonly none: { readonly text: string; readonly exitCode: number };
  /** What the preview's trial came to, where it has one. */
  readonly trial?: (found: OrderPreview<Name>) => Trial | undefined;
  /** Instead of `tell`. @returns the exit code */
  readonly tell?: typeof tell;
};

const OPTIONS = { ...CONFIRM_OPTIONS, all: FLAG, note: TEXT } as const;
type Given = { readonly [Name in keyof typeof OPTIONS]?: Name extends 'note' ? string : boolean };

/** Exit code 1 if nothing was done, or if one could not be decided on. */
export function orderVerb<Name extends OrderName>(verb: OrderVerb<Name>): Verb {
  const { note: _note, ...withoutNote } = OPTIONS;
  const options = { ...filterOptions(verb.filters), ...(verb.needsNote ? OPTIONS : withoutNote) };
  return (args, env, io) => {
    const { values, positionals: ids } = parse(args, options, verb.idsMax);
    const filter = readFilters(verb.filters, values);
    const given = values as Given;
    requireWhich(verb, { ids, filter, given });
    const isDry = given['dry-run'] === true;
    const note = verb.needsNote && !isDry ? { note: requireNote(given.note, verb.past) } : {};
    if (given.all === true && !verb.isHarmless) requireSomebody(io, given, verb.past);
    // The API checks what was given.
    const which = given.all === true ? { filter } : { ids };
    return give(io, verb, { env, given, ordered: { ...which, ...note } as unknown as Ordered<Name> });
  };
}

/** @throws UsageError */
function requireWhich(
  {
    states,
    missing,
    misplaced = 'filters go with --all',
  }: Pick<OrderVerb<OrderName>, 'states' | 'missing' | 'misplaced'>,
  { ids, filter, given }: { ids: readonly string[]; filter: { readonly state?: string }; given: Given },
): void {
  if (given.all === true) {
    if (ids.length > 0) throw new UsageError('ids and --all exclude each other');
    if (states === undefined || states.some((state) => state === filter.state)) return;
    throw new UsageError(`--all goes with --state, which takes ${orOf(states)}`);
  }
  if (Object.keys(filter).length > 0) throw new UsageError(misplaced);
  if (given['dry-run'] === true) throw new UsageError('--dry-run goes with --all');
  if (ids.length === 0) throw new UsageError(`${missing} is missing`);
}

/** @throws UsageError */
function requireNote(note: string | undefined, past: string): string {
  if (note === undefined) throw new UsageError(`--note TEXT is missing: say why you discard them`);
  if (note.trim() === '') throw new UsageError(`--note TEXT is empty: say why they are ${past}`);
  return note;
}

async function give<Name extends OrderName>(
  io: Io,
  verb: OrderVerb<Name>,
  { env, given, ordered }: { env: Env; given: Given; ordered: Ordered<Name> },
): Promise<number> {
  const { client, nextKey } = openApi(env, io);
  const told = verb.tell ?? tell;
  const carryOut = (which: Ordered<Name>, total: number | undefined) =>
    told(io, client.order(verb.name, which, nextKey) as AsyncIterable<Page>, { verb, total });
  if (ordered.ids !== undefined) return carryOut(ordered, ordered.ids.length);
  const order = {
    ...verb,
    find: () => client.tryOrder(verb.name, ordered, nextKey()),
    carryOut: (found: OrderPreview<Name>) => {
      const bound = 'to' in found ? { to: found.to } : { up_to: found.up_to };
      return carryOut({ ...ordered, filter: { ...ordered.filter, ...bound } }, totalOf(found));
    },
  };
  if (verb.isHarmless && given['dry-run'] !== true && (given.yes === true || !hasSomebody(io)))
    return order.carryOut(await order.find());
  return runOrder(io, given, verb.columns, order);
}

const FAILURES: readonly string[] = ['still_quarantined', 'wrong_state', 'not_found'];
export const isFailure = ({ result }: Pick<Item, 'result'>): boolean => FAILURES.includes(result);

export type Telling = {
  readonly verb: Pick<OrderVerb<OrderName>, 'noun' | 'thing' | 'units' | 'past' | 'done'>;
  readonly total: number | undefined;
};

/** Each that was named; of those that matched, how many. */
async function tell(io: Io, pages: AsyncIterable<Page>, { verb, total }: Telling): Promise<number> {
  const { noun, units: unit, past, done: ended = past } = verb;
  let failures = 0;
  let isEachTold = false;
  const done = await takePages(io, pages, {
    unit,
    total,
    take: async (page) => {
      isEachTold ||= page.items !== undefined;
      for (const item of page.items ?? []) {
        if (isFailure(item)) failures += 1;
        await tellOne(io, item, { ended, thing: verb.thing });
      }
      return page.done;
    },
  });
  if (isEachTold) return failures === 0 ? 0 : 1;
  io.say(io.stdout.isTTY ? `${counted(done, noun)} ${ended}` : toJson({ [past]: done }));
  return done > 0 ? 0 : 1;
}

async function tellOne(
  io: Io,
  item: Item,
  { ended, thing }: { ended: string; thing: string },
): Promise<void> {
  const id = item.id ?? item.delivery_id ?? '';
  if (isFailure(item)) io.complain(`${clean(id)}: ${item.reason ?? `there is no such ${thing}`}`);
  else if (!io.stdout.isTTY) await io.putJson(item);
  else
    io.say(
      `${clean(item.event_id ?? id)} ${item.result === 'unchanged' ? `is ${item.state} already` : ended}`,
    );
}
