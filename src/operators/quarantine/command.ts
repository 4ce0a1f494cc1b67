// `tallyhook quarantine`: authentic deliveries that were not understood. They get a second try with the present schemas, or are
// given up, with a note that says why.

import { CONFIRM_OPTIONS } from '../../terminal/ask.ts';
import { nounCommand } from '../../terminal/command.ts';
import type { Io } from '../../terminal/io.ts';
import { printTable } from '../../terminal/listing.ts';
import { optionHelp } from '../../terminal/options.ts';
import { clean, count, counted } from '../../terminal/readable.ts';
import type { Column } from '../../terminal/table.ts';
import { DISCARDED_AT_ONCE, LISTS, type OrderPreview, RELEASED_AT_ONCE } from '../client/index.ts';
import { groupsHelp, groupsVerb } from '../kernel/group/group.command.ts';
import { COLUMNS } from '../kernel/list/columns.command.ts';
import { outcomeWord } from '../kernel/list/fields.contract.ts';
import { filterHelp } from '../kernel/list/filters.command.ts';
import { listHelp, listVerb } from '../kernel/list/list.command.ts';
import { takePages, type Trial } from '../kernel/order/order.command.ts';
import {
  type Item,
  isFailure,
  type OrderVerb,
  orderVerb,
  type Telling,
} from '../kernel/order/verb.command.ts';

type Preview = OrderPreview<'quarantine/release'>;

/** Of the actions on all that wait. */
const { state: _state, ...ORDER_FILTERS } = LISTS.quarantine.filters;

/** Of those that are still not understood. */
const SHOWN_MAX = 20;

const help = `Authentic deliveries that were not understood: they are kept, and not published.

  quarantine list       the newest first
${listHelp('quarantine')}
  quarantine groups     how many wait for which reason
${groupsHelp('quarantine')}
  quarantine release ID…
                        try to understand these again, at most ${RELEASED_AT_ONCE}, with the present schemas; if that succeeds, they
                        become events
  quarantine release --all
                        all that wait, or with filters some of them; on a terminal it tries them, says how many can be
                        released and why the others cannot, and asks
${filterHelp(ORDER_FILTERS)}
${optionHelp(CONFIRM_OPTIONS)}
  quarantine discard ID… --note TEXT
                        give up these, at most ${DISCARDED_AT_ONCE}, for good: they no longer wait, and cannot be released any more;
                        they stay in "deliveries list", with their bodies, for the usual time. The note says why
  quarantine discard --all --note TEXT
                        all that wait, or some of them, with the options of "release --all"; it shows them and asks

Exit code 1 if one is still not understood, or could not be discarded.`;

const ofDeliveries = {
  noun: 'delivery',
  thing: 'delivery',
  units: 'deliveries',
  columns: COLUMNS.quarantine,
  filters: ORDER_FILTERS,
} as const satisfies Partial<OrderVerb<'quarantine/release'>>;
const NOTHING = 'nothing that matches waits in quarantine';

const release = orderVerb({
  ...ofDeliveries,
  name: 'quarantine/release',
  idsMax: RELEASED_AT_ONCE,
  isHarmless: true,
  past: 'released',
  missing: 'the id of a delivery, or --all,',
  question: (amount) => `Release ${amount}?`,
  none: { text: NOTHING, exitCode: 0 },
  trial: trialOf,
  tell: tellResults,
});

const discard = orderVerb({
  ...ofDeliveries,
  name: 'quarantine/discard',
  idsMax: DISCARDED_AT_ONCE,
  needsNote: true,
  past: 'discarded',
  missing: 'the id of a delivery, or --all,',
  question: (amount) => `Discard ${amount} for good?`,
  none: { text: NOTHING, exitCode: 1 },
});

/** Of the dry run: what would become of them. */
function trialOf({ matched, matched_exactly: isExact, trial }: Preview): Trial | undefined {
  if (trial === undefined) return undefined;
  const { tried, releasable, reasons } = trial;
  const isAll = isExact && tried === matched;
  const cannot = tried - releasable;
  if (cannot === 0 && isAll) return undefined;
  const which = isAll ? '' : `of the oldest ${counted(tried, 'delivery')}, `;
  const why = reasons.map(({ reason, count: number }) => `\n  ${count(number)}: ${clean(reason)}`).join('');
  return {
    text: `${which}${count(releasable)} can be released with the present schemas, ${count(cannot)} cannot${why === '' ? '' : `:${why}`}`,
    isFruitless: isAll && releasable === 0,
    ...(isAll && { part: `${count(releasable)} of ` }),
  };
}

async function tellResults(
  io: Io,
  pages: AsyncIterable<{ readonly items?: readonly Item[] | undefined }>,
  { verb: { units: unit }, total }: Telling,
): Promise<number> {
  const results = new Map<string, number>();
  const failures: Item[] = [];
  const take = async ({ items = [] }: { readonly items?: readonly Item[] | undefined }) => {
    for (const item of items) {
      results.set(item.result, (results.get(item.result) ?? 0) + 1);
      if (isFailure(item)) failures.push(item);
      if (!io.stdout.isTTY) await io.putJson(item);
    }
    return items.length;
  };
  const done = await takePages(io, pages, { unit, total, take });
  await summarize(io, { done, results, failures });
  return failures.length === 0 ? 0 : 1;
}

async function summarize(
  io: Io,
  {
    done,
    results,
    failures,
  }: { done: number; results: ReadonlyMap<string, number>; failures: readonly Item[] },
): Promise<void> {
  const parts = Array.from(
    results,
    ([result, number]) => `${count(number)} ${outcomeWord(readable(result), number)}`,
  );
  io.complain(
    done === 0 ? 'nothing waits in quarantine' : `${counted(done, 'delivery')}: ${parts.join(', ')}`,
  );
  if (!io.stdout.isTTY || failures.length === 0) return;
  const shown = failures.slice(0, SHOWN_MAX);
  await io.put('\n');
  await printTable(io, shown, FAILURE_COLUMNS);
  if (shown.length < failures.length) io.complain('and more: see "tallyhook quarantine list"');
}

const readable = (result: string) => result.replaceAll('_', ' ');

export const FAILURE_COLUMNS: readonly Column<Item>[] = [
  { head: 'delivery', text: (item) => item.delivery_id ?? '' },
  { head: 'reason', text: (item) => item.reason ?? readable(item.result), wrapTo: 40 },
];

export const quarantine = nounCommand('quarantine', {
  help,
  verbs: {
    list: listVerb('quarantine', 'quarantined delivery'),
    groups: groupsVerb('quarantine'),
    release,
    discard,
  },
});
