// The list of replays, and one of them: its progress, what it left out, and how to pause, resume or end it.

import type { z } from 'zod';
import { type Content, html } from '../../web/index.ts';
import { type Calls } from '../kernel/console/calls.ts';
import { get, type Page, post } from '../kernel/console/page.ts';
import { sameAs } from '../kernel/console/same-as.ts';
import { listPage } from '../kernel/list/list.pages.ts';
import { keyField, keyIn } from '../kernel/view/act.ts';
import { renderFacts } from '../kernel/view/facts.ts';
import { forOperators } from '../kernel/view/for-operators.ts';
import { address, eventHref, replayHref } from '../kernel/view/links.ts';
import { capped, counted, exact } from '../kernel/view/numbers.ts';
import { state } from '../kernel/view/states.ts';
import { renderTable } from '../kernel/view/table.ts';
import { utc } from '../kernel/view/times.ts';
import { Replay, ReplayDetail } from './contract.ts';

type Shown = z.output<typeof Replay>;
type Detail = z.output<typeof ReplayDetail>;

const REFRESH_S = 2;

export const replays = listPage({
  name: 'replays',
  title: 'Replays',
  first: ['state'],
  cells: {
    created_at: (replay) => html`<a href="${replayHref(replay.id)}">${utc(replay.created_at)}</a>`,
    matched: (replay) => matchedOf(replay),
  },
  empty: html`A replay publishes events again. It appears here once somebody starts one.`,
  beside: ({ calls }) =>
    calls.may('createReplay') && html`<a class="button main" href="/console/replays/new">New replay</a>`,
});

const whereOf = ({ queue }: Shown) => (queue === null ? 'the exchange' : `the queue ${queue}`);
const matchedOf = ({ counts, matched_exactly: isExact }: Shown) => capped(counts.matched, isExact);

export const replay: Page = get('/replays/:id', ['getReplay'], async (visit) => {
  const id = visit.params['id'] ?? '';
  const found = await visit.calls.call('getReplay', ReplayDetail, { params: { id } });
  const isOpen = found.state === 'running' || found.state === 'paused';
  return {
    title: `Replay ${id}`,
    heading: html`Replay of ${counted(found.counts.matched, 'event', found.matched_exactly)}`,
    body: html`${found.paused_because !== null && html`<div class="notice warn"><p>Paused ${found.paused_because.startsWith('by ') ? '' : 'because: '}${found.paused_because}.</p></div>`}
${progressOf(found)}
${isOpen && steering(found, visit.calls)}
${factsOf(found)}
${skipsOf(found)}
${visit.calls.may('createReplay') && html`<p><a href="${againHref(found)}">Replay these events again</a></p>`}`,
    sameAs: sameAs(visit.origin, { command: ['replays', 'show', id], path: `/replays/${id}` }),
    ...(found.state === 'running' && { refreshS: REFRESH_S }),
  };
});

function progressOf(found: Detail): Content {
  const { counts, matched_exactly: isExact } = found;
  const done = doneOf(found);
  const text = `${exact(done)} of ${matchedOf(found)}`;
  return html`<p class="progress">${state(found.state)} ${
    isExact &&
    html`<progress max="${Math.max(1, counts.matched)}" value="${done}" aria-label="Progress of the replay">${text}</progress> `
  }${text}</p>`;
}

function factsOf(found: Detail): Content {
  const { counts, filter } = found;
  return renderFacts([
    ['To', whereOf(found)],
    ['Confirmed', exact(counts.confirmed)],
    ['Returned', counts.returned > 0 && exact(counts.returned)],
    ['Failed', counts.failed > 0 && exact(counts.failed)],
    ['Skipped', counts.skipped > 0 && exact(counts.skipped)],
    ['Remaining', found.state !== 'cancelled' && comingOf(found)],
    ['Not published', found.state === 'cancelled' && notPublishedOf(found)],
    ['Rate limit', `${counted(found.rate_per_second, 'copy')} per second`],
    ['Why', found.note],
    [
      'Filter',
      filter &&
        Object.entries(filter).map(([name, value]) => html`<code>${name}</code> ${String(value)}<br>`),
    ],
    [
      'Events',
      found.event_ids
        ?.slice(0, IDS_SHOWN_MAX)
        .map((id) => html`<a class="id" href="${eventHref(id)}">${id}</a><br>`),
    ],
    [
      '',
      (found.event_ids?.length ?? 0) > IDS_SHOWN_MAX &&
        `and ${exact((found.event_ids?.length ?? 0) - IDS_SHOWN_MAX)} more`,
    ],
    ['Started', html`${utc(found.created_at)} UTC by ${found.created_by}`],
    ['Ended', found.finished_at && html`${utc(found.finished_at)} UTC`],
    ['Id', html`<span class="id">${found.id}</span>`],
    [
      'Attempts',
      html`<a href="${address('/console/publications', { replay_id: found.id })}">Publications of this replay</a>`,
    ],
  ]);
}

const doneOf = ({ counts }: Shown): number =>
  counts.confirmed + counts.returned + counts.failed + counts.skipped;

/** Some are in the outbox already. */
function comingOf({ counts, matched_exactly: isExact }: Shown): string | undefined {
  const inOutbox = counts.queued - counts.confirmed - counts.returned - counts.failed;
  const later = Math.max(0, counts.matched - counts.queued - counts.skipped);
  if (inOutbox + later === 0 && isExact) return undefined;
  return `${capped(inOutbox + later, isExact)}, ${exact(inOutbox)} of them in the outbox`;
}

/** What was in the outbox when it was cancelled left it then. */
const notPublishedOf = (found: Shown): string =>
  capped(Math.max(0, found.counts.matched - doneOf(found)), found.matched_exactly);

const IDS_SHOWN_MAX = 20;

function skipsOf({ skips, counts }: Detail): Content {
  if (skips.length === 0) return undefined;
  return html`<h2>Skipped</h2>
${renderTable({
  caption: counts.skipped > skips.length ? `The first ${skips.length}` : 'Skipped events',
  columns: [
    {
      head: 'Event',
      cell: ({ event_id: id }) => html`<a class="id" href="${eventHref(id)}">${id}</a>`,
      form: 'name',
    },
    { head: 'Reason', cell: ({ reason }) => reason, form: 'long' },
  ],
  items: skips,
  empty: '',
})}`;
}

/** Of a selection by ids the first ones alone: an address is short. */
const againHref = ({ filter, event_ids: ids, queue }: Detail): string =>
  address('/console/replays/new', {
    ...Object.fromEntries(Object.entries(filter ?? {}).map(([name, value]) => [name, String(value)])),
    event_ids: ids?.slice(0, IDS_SHOWN_MAX).join('\n'),
    queue: queue ?? undefined,
  });

function steering({ id, state: now }: Detail, { may }: Calls): Content {
  if (!may('pauseReplay')) return forOperators('Pausing, resuming and cancelling are');
  const change = now === 'running' ? 'pause' : 'resume';
  return html`<div class="actions"><form method="post" action="${replayHref(id)}/${change}">${keyField()}<button>${now === 'running' ? 'Pause' : 'Resume'}</button></form>
<a class="button drastic" href="${replayHref(id)}/cancel">Cancel …</a></div>`;
}

const changePage = (change: 'pause' | 'resume' | 'cancel'): Page =>
  post(`/replays/:id/${change}`, [`${change}Replay`], async ({ params, calls, form }) => {
    const { id } = await calls.call(`${change}Replay`, Replay, {
      params: { id: params['id'] },
      key: keyIn(form),
    });
    return { seeOther: replayHref(id) };
  });

const confirmCancel: Page = get(
  '/replays/:id/cancel',
  ['cancelReplay', 'getReplay'],
  async ({ params, calls, origin }) => {
    const found = await calls.call('getReplay', ReplayDetail, { params: { id: params['id'] } });
    const { id } = found;
    return {
      title: 'Cancel this replay?',
      body: html`${progressOf(found)}
<p>The remaining events will not be published, and the replay cannot be resumed. Copies that were published already cannot be taken back.</p>
<form method="post" action="${replayHref(id)}/cancel">${keyField()}<p class="actions"><button class="danger">Cancel the replay</button> <a href="${replayHref(id)}">Keep it</a></p></form>`,
      sameAs: sameAs(origin, { command: ['replays', 'cancel', id], path: `/replays/${id}/cancel`, body: {} }),
    };
  },
);

export const replayPages: readonly Page[] = [
  replays,
  replay,
  confirmCancel,
  changePage('pause'),
  changePage('resume'),
  changePage('cancel'),
];
