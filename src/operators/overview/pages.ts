// The overview: is all well? What needs a decision comes first, then what happened lately, then the parts of the service.

import { type Content, type Html, html } from '../../web/index.ts';
import { get, type Visit } from '../kernel/console/page.ts';
import { sameAs } from '../kernel/console/same-as.ts';
import { renderFacts } from '../kernel/view/facts.ts';
import { type Figure, renderFigures } from '../kernel/view/figures.ts';
import { address } from '../kernel/view/links.ts';
import { capped } from '../kernel/view/numbers.ts';
import { state } from '../kernel/view/states.ts';
import { renderTable } from '../kernel/view/table.ts';
import { utc } from '../kernel/view/times.ts';
import { type Replica, ReplicaList } from '../replicas/contract.ts';
import { Stats } from '../statistics/contract.ts';
import { renderCharts } from './charts.pages.ts';
import { RANGES, type Range, rangeIn, renderRanges } from './range.pages.ts';
import { readIncidents, renderWhatWas } from './going-on.pages.ts';
import { stepsOf } from './series.pages.ts';
import { type Count, renderVerdict, type Situation } from './verdict.pages.ts';

/** A person looks at so many at most; more is `200+`. */
const SHOWN_MAX = 200;
const PAUSED_MAX = 50;
const REFRESH_S = 10;

export const overview = get(
  '',
  ['getStats', 'listOutbox', 'listJobs', 'listReplays', 'listQuarantine', 'listReplicas', 'listIncidents'],
  async (visit) => {
    const range = rangeIn(visit.query);
    const source = visit.query.get('source') || undefined;
    const { spanS, stepS, name } = RANGES[range];
    const from = new Date(Date.now() - spanS * 1_000).toISOString();
    const [stats, parts] = await Promise.all([
      visit.calls.call('getStats', Stats, { query: { from, step: stepS, source, together: 'true' } }),
      readSituation(visit),
    ]);
    // After the others, which take all connections of operators already.
    const incidents = await readIncidents(visit);
    const situation = { ...parts, goingOn: incidents.goingOn };
    return {
      title: 'Overview',
      refreshS: REFRESH_S,
      body: html`${renderVerdict(situation)}
${renderWaiting(situation)}
${renderWhatWas(incidents)}
<div class="spread">${renderRanges({ chosen: range, source })}${sourceForm(visit, range, source)}</div>
${renderCharts({ stats, steps: stepsOf(stats), span: name, source })}
${renderService(situation)}
${renderReplicas(situation.replicas)}`,
      sameAs: sameAs(visit.origin, {
        command: ['stats', '--step', `${stepS / 60}m`],
        path: '/stats',
        query: { from, step: stepS, source, together: 'true' },
      }),
    };
  },
);

async function readSituation({ calls, readiness }: Visit): Promise<Omit<Situation, 'goingOn'>> {
  const [outbox, quarantine, stuck, paused, replicas, ready] = await Promise.all([
    calls.list('outbox', { state: 'pending', limit: 1 }),
    calls.list('quarantine', { limit: SHOWN_MAX }),
    calls.list('jobs', { state: 'stuck', limit: SHOWN_MAX }),
    calls.list('replays', { state: 'paused', limit: PAUSED_MAX }),
    calls.call('listReplicas', ReplicaList),
    readiness(),
  ]);
  const ofOutbox = (count: number) => ({ count, isExact: outbox.counts_complete });
  return {
    quarantined: { count: quarantine.items.length, isExact: quarantine.next_cursor === null },
    returned: ofOutbox(outbox.counts.returned),
    parked: ofOutbox(outbox.counts.parked),
    pending: ofOutbox(outbox.counts.pending),
    oldestPendingAt: outbox.oldest_pending_at,
    oldestPending: outbox.items[0],
    pausedReplays: {
      // A person who paused one knows.
      count: paused.items.filter((replay) => replay.paused_because !== null).length,
      isExact: paused.next_cursor === null,
    },
    stuck: { count: stuck.items.length, isExact: stuck.next_cursor === null },
    readiness: ready,
    replicas: replicas.items,
    loss: replicas.loss ?? null,
    mayDecide: calls.may('retryEntries'),
    nowMs: Date.now(),
  };
}

function sourceForm({ sources }: Visit, range: Range, source: string | undefined): Content {
  if (sources.length < 2 && source === undefined) return undefined;
  const all = source === undefined || sources.includes(source) ? sources : [...sources, source];
  return html`<form class="filters" action="/console" aria-label="Source of the charts"><input type="hidden" name="range" value="${range}">
<label>Source <select name="source"><option value="">all</option>${all.map((each) => html`<option${each === source && html` selected`}>${each}</option>`)}</select></label><button>Show</button></form>`;
}

const inOutbox = (name: string) => address('/console/outbox', { state: name });

const due = ({ count, isExact }: Count, name: string, href: string): Figure => ({
  value: capped(count, isExact),
  name,
  href,
  isDue: count > 0,
});

function renderWaiting({ pending, returned, parked, quarantined, stuck, oldestPendingAt }: Situation): Html {
  return html`<section aria-label="What waits">${renderFigures([
    {
      ...due(pending, 'events to publish', inOutbox('pending')),
      isDue: false,
      more: oldestPendingAt !== null && html`oldest: ${utc(oldestPendingAt)}`,
    },
    due(returned, 'returned events', inOutbox('returned')),
    due(parked, 'parked events', inOutbox('parked')),
    due(quarantined, 'in quarantine', '/console/quarantine'),
    due(stuck, 'stuck jobs', address('/console/jobs', { state: 'stuck' })),
  ])}</section>`;
}

function renderService({ readiness, replicas }: Situation): Html {
  const leader = replicas.find(({ leads, is_late: isLate }) => leads && !isLate);
  return html`<section><h2>Service</h2>
${renderFacts([
  ['RabbitMQ', state(readiness.rabbitmq)],
  ['Postgres', state(readiness.postgres)],
  ['Leads the relay', leader?.host ?? 'no replica'],
])}</section>`;
}

const renderReplicas = (replicas: readonly Replica[]): Html => html`<h2>Replicas</h2>
${renderTable<Replica>({
  caption: 'Replicas',
  items: replicas,
  empty: 'A replica appears here with its first heartbeat, seconds after its start.',
  columns: [
    { head: 'Replica', cell: ({ host }) => host },
    { head: 'Version', cell: ({ version }) => version, form: 'brief' },
    { head: 'State', cell: ({ is_late: isLate }) => state(isLate ? 'silent' : 'alive'), form: 'brief' },
    { head: 'Relay', cell: ({ leads }) => (leads ? 'leads' : 'stands by'), form: 'brief' },
    { head: 'Started (UTC)', cell: (replica) => utc(replica.started_at), form: 'brief' },
    { head: 'Last heartbeat (UTC)', cell: (replica) => utc(replica.seen_at), form: 'brief' },
    { head: 'Id', cell: ({ id }) => html`<span class="id">${id}</span>`, form: 'long' },
  ],
})}`;
