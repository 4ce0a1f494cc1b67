// An order about many things at once: the ticked ones, or all that match. First a page shows what it is about, with its number;
// the form on it acts on exactly that, since it carries the ids, or the dry run's upper bound. One call takes a bounded part; the
// result says how far it came, and goes on under the same bound.

import type { z } from 'zod';
import { type Content, html } from '../../../web/index.ts';
import { ORDERS, type OrderName } from '../../orders.contract.ts';
import { get, type Page, post, type View, type Visit } from '../console/page.ts';
import { sameAs } from '../console/same-as.ts';
import { ApiError } from '../operation/operation.ts';
import { hiddenFields, keyField, keyIn, nextKey, textIn } from '../view/act.ts';
import { renderFacts } from '../view/facts.ts';
import { counted, exact } from '../view/numbers.ts';
import { type Column, renderTable } from '../view/table.ts';
import { fieldsOf, orderHref, type Selectable, type Wanted, wantedIn } from './selection.pages.ts';

type Preview<Item> = {
  readonly matched: number;
  readonly matched_exactly: boolean;
  readonly sample: readonly Item[];
  /** The upper bound, as the order's filter takes it. */
  readonly up_to?: string;
  readonly to?: string;
};

/** What a preview that tries has found. */
export type Tried = {
  readonly possible: number;
  /** False where there are more than were tried. */
  readonly isAll: boolean;
  /** How many can be dealt with, and why the others cannot. */
  readonly said: Content;
};

type Done<Told> = {
  readonly done: number;
  readonly items?: readonly Told[] | undefined;
  readonly next_cursor: string | null;
};

/** `Item`: what an order is about, as a preview shows it. `Told`: what became of one. */
export type Order<Item, Told> = Selectable & {
  readonly name: OrderName;
  readonly answer: z.ZodType<Done<Told> | Preview<Item>>;
  readonly columns: readonly Column<Item>[];
  readonly renderItems: (items: readonly Told[]) => Content;
  readonly words: {
    /** `Retry` */
    readonly verb: string;
    /** `retried` */
    readonly past: string;
    readonly noun: string;
    /** What it means, a sentence or two. */
    readonly effect: Content;
  };
  readonly needsNote?: boolean;
  readonly isFinal?: boolean;
  /** Where the preview tries: nothing is offered that would do nothing, but what can be done instead. */
  readonly trial?: {
    readonly triedIn: (found: Preview<Item>) => Tried | undefined;
    readonly instead: { readonly name: OrderName; readonly verb: string };
  };
};

const NOTE_MAX = 500;

export function orderPages<Item, Told>(order: Order<Item, Told>): readonly Page[] {
  const needs = [ORDERS[order.name].id];
  return [
    get(`/${order.name}`, needs, (visit) => confirm(order, visit)),
    post(`/${order.name}`, needs, (visit) => carryOut(order, visit)),
  ];
}

type Described = Pick<Order<never, never>, 'name' | 'words'>;

const listOf = ({ name }: Pick<Described, 'name'>) => `/console/${name.split('/')[0]}`;

async function confirm<Item, Told>(order: Order<Item, Told>, visit: Visit): Promise<View> {
  const { verb, noun, effect } = order.words;
  const wanted = wantedIn(visit.query, order);
  if (wanted === undefined) return nothingTicked(order);
  const found = await visit.calls.call(ORDERS[order.name].id, order.answer, {
    body: { ...wanted, dry_run: true },
  });
  if (!('matched' in found)) throw new Error('a dry run is no order');
  const all = counted(found.matched, noun, found.matched_exactly);
  const tried = found.matched === 0 ? undefined : order.trial?.triedIn(found);
  const amount =
    tried?.isAll === true && tried.possible < found.matched ? `${exact(tried.possible)} of ${all}` : all;
  const bounded =
    'ids' in wanted ? wanted : { filter: { ...wanted.filter, [order.bound]: found[order.bound] ?? '' } };
  const isNone = found.matched === 0 && found.matched_exactly;
  if (tried?.isAll === true && tried.possible === 0)
    return fruitless(order, { wanted, bounded, tried, all, found, origin: visit.origin });
  const back = html`<a href="${listOf(order)}">Back to the list</a>`;
  return {
    title: isNone ? `Nothing to ${verb.toLowerCase()}` : `${verb} ${amount}?`,
    body: html`${describe(wanted, found.matched, order)}
${
  isNone
    ? html`<p>Nothing that matches can be ${order.words.past} any more.</p><p>${back}</p>`
    : html`${tried?.said}<p>${effect}${'filter' in wanted && ' Whatever arrives after this preview is not touched.'}</p>
<form class="form" method="post" action="/console/${order.name}">${hiddenFields({ ...fieldsOf(bounded), of: all })}${keyField()}
${order.needsNote === true && html`<label>Why <input name="note" required maxlength="${NOTE_MAX}" autocomplete="off"></label>`}
<p class="actions"><button class="${order.isFinal === true ? 'danger' : 'main'}">${verb} ${amount}</button> ${back}</p></form>
${found.matched > found.sample.length && html`<p class="hint">The oldest ${found.sample.length} of them:</p>`}
${renderSample(order, found)}`
}`,
    sameAs: sameOrder(order, wanted, visit.origin),
  };
}

const renderSample = <Item>(
  { columns }: Pick<Order<Item, never>, 'columns'>,
  found: Preview<Item>,
): Content =>
  renderTable({
    caption:
      found.matched > found.sample.length ? `The oldest ${found.sample.length} of them` : 'All of them',
    columns,
    items: found.sample,
    empty: '',
  });

/** Instead of a button that would do nothing. */
function fruitless<Item, Told>(
  order: Order<Item, Told>,
  {
    wanted,
    bounded,
    tried,
    all,
    found,
    origin,
  }: {
    wanted: Wanted;
    bounded: Wanted;
    tried: Tried;
    all: string;
    found: Preview<Item>;
    origin: string;
  },
): View {
  const { past, noun, verb: own } = order.words;
  const { name, verb } = order.trial?.instead ?? { name: order.name, verb: own };
  return {
    title: found.matched === 1 ? `This ${noun} cannot be ${past}` : `None of ${all} can be ${past}`,
    body: html`${describe(wanted, found.matched, order)}
${tried.said}
<p class="actions"><a class="button" href="${orderHref(name, fieldsOf(bounded))}">${verb} ${all} …</a> <a href="${listOf(order)}">Back to the list</a></p>
${renderSample(order, found)}`,
    sameAs: sameOrder(order, wanted, origin),
  };
}

function describe(wanted: Wanted, matched: number, { words }: Pick<Described, 'words'>): Content {
  if ('filter' in wanted) {
    const given = Object.entries(wanted.filter);
    if (given.length === 0) return html`<p>Everything that is waiting.</p>`;
    return renderFacts(given);
  }
  const missing = wanted.ids.length - matched;
  return (
    missing > 0 &&
    matched > 0 &&
    html`<div class="notice warn"><p>${counted(missing, 'other')} of those you selected cannot be ${words.past} any more.</p></div>`
  );
}

const nothingTicked = (order: Described): View => ({
  title: 'Nothing was selected',
  status: 400,
  body: html`<p>Tick at least one ${order.words.noun} in the list. <a href="${listOf(order)}">Back to the list</a></p>`,
});

async function carryOut<Item, Told>(order: Order<Item, Told>, visit: Visit): Promise<View> {
  const { calls, form } = visit;
  const wanted = wantedIn(form, order);
  if (wanted === undefined) return nothingTicked(order);
  if ('filter' in wanted && wanted.filter[order.bound] === undefined) {
    throw new ApiError(400, 'invalid_request', `${order.bound}: the form lacks what its preview was of`);
  }
  const key = keyIn(form);
  const note = textIn(form, 'note');
  const cursor = textIn(form, 'cursor');
  const answer = await calls.call(ORDERS[order.name].id, order.answer, {
    key,
    body: { ...wanted, ...(note !== undefined && { note }), ...(cursor !== undefined && { cursor }) },
  });
  if ('matched' in answer) throw new Error('an order is no dry run');
  const { items } = answer;
  return result(order, { wanted, key, note, form, answer, items: items && order.renderItems(items) });
}

function result(
  order: Described,
  {
    wanted,
    key,
    note,
    form,
    answer: { done: count, next_cursor: next },
    items,
  }: {
    wanted: Wanted;
    key: string;
    note: string | undefined;
    form: URLSearchParams;
    answer: Done<unknown>;
    items: Content;
  },
): View {
  const { verb, past, noun } = order.words;
  const of = textIn(form, 'of');
  const done = count + doneIn(form);
  const inAll = done === 0 && next === null ? `None was ${past}` : `${counted(done, noun)} ${past}`;
  return {
    title: inAll,
    body: html`${
      next === null
        ? html`<p>${of !== undefined && of !== counted(done, noun) && html`The preview showed ${of}. `}<a href="${listOf(order)}">Back to the list</a></p>`
        : html`<div class="notice warn"><p>There are more: ${of ?? 'as many as were shown'} in all. Each step handles a part of them.</p>
<form method="post" action="/console/${order.name}">${hiddenFields({ ...fieldsOf(wanted), note, of, done, cursor: next })}${keyField(nextKey(key))}<p class="actions"><button class="main">${verb} the next ones</button> <a href="${listOf(order)}">Leave the rest</a></p></form></div>`
    }
${items}`,
  };
}

const doneIn = (form: URLSearchParams) => Number(/^\d{1,9}$/.exec(form.get('done') ?? '')?.[0] ?? 0);

/** Of ids the command line has no dry run: then both lines are the order itself. */
function sameOrder(
  { name, needsNote }: Pick<Order<never, never>, 'name' | 'needsNote'>,
  wanted: Wanted,
  origin: string,
) {
  const words = name.split('/');
  const note = needsNote === true && 'ids' in wanted ? 'the reason' : undefined;
  const command = [...words, ...('ids' in wanted ? wanted.ids : ['--all', '--dry-run'])];
  return sameAs(origin, {
    command: [...command, ...(note === undefined ? [] : ['--note', note])],
    path: `/${name}`,
    ...('filter' in wanted && { query: wanted.filter }),
    body: { ...wanted, ...('filter' in wanted ? { dry_run: true } : note !== undefined && { note }) },
  });
}
