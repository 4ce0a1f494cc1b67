// The search box of every page. What names one thing leads to it; anything else lists what it may mean.

import { type Content, type Html, html } from '../../web/index.ts';
import { get } from '../kernel/console/page.ts';
import { sameAs } from '../kernel/console/same-as.ts';
import { address, deliveryHref, eventHref, jobHref, replayHref, sourceHref } from '../kernel/view/links.ts';
import { counted } from '../kernel/view/numbers.ts';
import { state } from '../kernel/view/states.ts';
import { renderTable } from '../kernel/view/table.ts';
import { utc } from '../kernel/view/times.ts';
import { PART_LENGTH_MIN, SEARCH_MAX, SearchAnswer, type SearchItem } from './contract.ts';

export const search = get('/search', ['search'], async ({ query, calls, origin }) => {
  const q = query.get('q')?.trim() ?? '';
  if (q === '') return { title: 'Search', body: SEARCHED };
  const answer = await calls.call('search', SearchAnswer, { query: { q } });
  const { items } = answer;
  const exact = items.filter(({ what }) => what !== 'job_prefix' && what !== 'job_part');
  const [only] = exact;
  if (only !== undefined && exact.length === 1) return { seeOther: hrefOf(only) };
  return {
    title: `Search: ${q}`,
    heading: html`Search: <span class="id">${q}</span>`,
    body: items.length === 0 ? nothing(q, answer) : found(q, answer),
    sameAs: sameAs(origin, { command: ['find', q], path: '/search', query: { q } }),
  };
});

function hrefOf({ what, id, source }: SearchItem): string {
  switch (what) {
    case 'job':
    case 'job_prefix':
    case 'job_part':
      return jobHref(source ?? '', id);
    case 'event':
      return eventHref(id);
    case 'delivery':
      return deliveryHref(id);
    case 'replay':
      return replayHref(id);
    case 'error_code':
      // Also those of deliveries that made no event.
      return address('/console/deliveries', { error_code: id });
    case 'source':
      return sourceHref(id);
  }
}

const WORDS: Readonly<Partial<Record<SearchItem['what'], string>>> = {
  error_code: 'error code',
  job_prefix: 'job',
  job_part: 'job',
};

function found(q: string, answer: SearchAnswer): Html {
  const { items, more_of: moreOf } = answer;
  return html`<p class="hint">Exact matches first, then jobs whose id begins with it, by id, then newer ones that have it inside. ${howFar(answer)}</p>
${renderTable<SearchItem>({
  caption: `Matches for ${q}`,
  items,
  empty: undefined,
  columns: [
    { head: 'What', cell: ({ what }) => WORDS[what] ?? what, form: 'brief' },
    {
      head: 'Name',
      cell: (item) => html`<a class="id" href="${hrefOf(item)}">${item.id}</a>`,
      form: 'long',
    },
    { head: 'Source', cell: ({ source }) => source, form: 'brief' },
    { head: 'State', cell: (item) => state(item.state), form: 'brief' },
    { head: 'Newest (UTC)', cell: ({ at }) => utc(at), form: 'brief' },
  ],
})}
${moreOf.length > 0 && html`<p>The first ${SEARCH_MAX} of each kind are shown. ${moreOf.includes('job_prefix') && html`<a href="${address('/console/jobs', { job_id_prefix: q })}">All jobs whose ids begin with this</a>`}</p>`}`;
}

const SEARCHED: Content = html`<p>Search for:</p>
<ul><li>the id of a job, an event, a delivery or a replay, as a log or a message has it</li>
<li>the beginning of a job’s id, or of newer jobs any part of ${PART_LENGTH_MIN} characters or more, whatever its case: it lists the jobs that match</li>
<li>an error code, in its exact case</li>
<li>the name of a source</li></ul>
<p>For anything else use the filters of <a href="/console/deliveries">deliveries</a>, <a href="/console/jobs">jobs</a> and <a href="/console/events">events</a>.</p>`;

/** Of the text inside of ids. */
function howFar({ looked_through: looked }: SearchAnswer): Content {
  if (!looked) return undefined;
  const { jobs, back_to: at } = looked;
  if (at === null) return `Every job’s id was searched (${counted(jobs, 'job')}).`;
  return html`The ids of the newest ${counted(jobs, 'job')} were searched, back to ${utc(at)} UTC; for older ones, search for the beginning.`;
}

const nothing = (q: string, answer: SearchAnswer): Html =>
  html`<p class="notice">Nothing has the id, code or name <span class="id">${q}</span>, and no job’s id begins with it. ${howFar(answer)} It may be older than what is kept, or belong to a source that you may not see.</p>
${SEARCHED}`;
