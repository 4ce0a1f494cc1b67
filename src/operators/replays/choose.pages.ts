// The replay of events that were chosen in a list: the ticked ones, or those of the publications that match its filters. It leads
// to the form of a new replay, by its address where the ids are short enough for one.

import { html } from '../../web/index.ts';
import { type Page, post, type Reply, type View, type Visit } from '../kernel/console/page.ts';
import { filtersIn } from '../kernel/list/filter-form.pages.ts';
import { withUnits } from '../kernel/list/list.pages.ts';
import { exact } from '../kernel/view/numbers.ts';
import { address } from '../kernel/view/links.ts';
import { publicationFilters } from '../publications/contract.ts';
import { ADDRESS_MAX, fieldsOf, type ReplayForm, readReplayForm } from './form.pages.ts';
import { REPLAY_EVENT_IDS_MAX } from './order.contract.ts';
import { PATH, viewReplay } from './order.pages.ts';

/** Ten pages of the list: some 100 ms. */
const LOOKED_AT_MAX = 1_000;
const PAGE_ITEMS = 100;
/** A form takes 64 KiB (web/form.ts). An id has some characters that a form writes as three. */
const IDS_MAX_LENGTH = 48_000;

/** Also what the form of a new replay sends by itself, where its address would be too long. */
const chosen = post('/replays/choose', ['createReplay'], async (visit) => {
  const form = readReplayForm(visit.form);
  // The form itself may be empty, a list's is about ticks.
  return form.eventIds.length === 0 && visit.form.has('of') ? NOTHING_TICKED : toForm(visit, form);
});

const ofPublications = post('/publications/replay', ['createReplay', 'listPublications'], async (visit) => {
  const filters = withUnits(filtersIn(visit.form, publicationFilters), publicationFilters);
  const { ids, isAll, looked } = await eventsOf(visit, filters);
  if (ids.length === 0) return nothingMatches(filters);
  const form = { ...readReplayForm(new URLSearchParams()), eventIds: ids };
  if (isAll) return toForm(visit, form);
  const told = html`<div class="notice warn"><p>There are more publications that match: these are the events of the newest ${exact(looked)}. Narrow the filters for the others.</p></div>`;
  return viewReplay(visit, form, told);
});

async function toForm(visit: Visit, form: ReplayForm): Promise<Reply> {
  const href = address(PATH, fieldsOf(form, undefined));
  return href.length <= ADDRESS_MAX ? { seeOther: href } : viewReplay(visit, form);
}

/** Each event once, of the newest publications. */
async function eventsOf(
  { calls }: Visit,
  filters: Readonly<Record<string, string>>,
): Promise<{ ids: string[]; isAll: boolean; looked: number }> {
  const ids = new Set<string>();
  let length = 0;
  let looked = 0;
  let cursor: string | undefined;
  do {
    const page = await calls.list('publications', { ...filters, limit: PAGE_ITEMS, cursor });
    for (const { event_id: id } of page.items) {
      length += ids.has(id) ? 0 : encodeURIComponent(id).length + 3;
      if (length > IDS_MAX_LENGTH || ids.size === REPLAY_EVENT_IDS_MAX)
        return { ids: [...ids], isAll: false, looked };
      ids.add(id);
      looked += 1;
    }
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined && looked < LOOKED_AT_MAX);
  return { ids: [...ids], isAll: cursor === undefined, looked };
}

const NOTHING_TICKED: View = {
  title: 'Nothing was selected',
  status: 400,
  body: html`<p>Select at least one row of the list. <a href="/console/events">Events</a>, <a href="/console/publications">publications</a></p>`,
};

const nothingMatches = (filters: Readonly<Record<string, string>>): View => ({
  title: 'Nothing to replay',
  body: html`<p>No publications match these filters any more. <a href="${address('/console/publications', filters)}">Back to the list</a></p>`,
});

export const choosePages: readonly Page[] = [chosen, ofPublications];
