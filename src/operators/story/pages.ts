// One job's story on one page: what happened to it, in order, as a time line. The error message and the bodies stand in it at a
// press, since each reading is a line of the operator log.

import { type Content, html } from '../../web/index.ts';
import { readBodyOf } from '../deliveries/delivery.pages.ts';
import { get, type Page, post, type View, type Visit } from '../kernel/console/page.ts';
import { sameAs } from '../kernel/console/same-as.ts';
import { renderBody } from '../kernel/view/body.ts';
import { renderFacts } from '../kernel/view/facts.ts';
import { address, jobHref } from '../kernel/view/links.ts';
import { missing } from '../kernel/view/missing.ts';
import { state } from '../kernel/view/states.ts';
import { copyable, id, seen } from '../kernel/view/texts.ts';
import { duration, utc } from '../kernel/view/times.ts';
import { Story } from './contract.ts';
import { renderHeldBack } from './held-back.pages.ts';
import { renderTimeLine, type Shown } from './time-line.pages.ts';

const SHOW = 'showStory';
const BODY = 'showDeliveryBody';
/** Few enough to be read, and most jobs have fewer. */
const ITEMS = 100;

type Asked = { readonly source: string; readonly job_id: string; readonly cursor: string | undefined };

const askedIn = (parameters: URLSearchParams): Asked => ({
  source: parameters.get('source') ?? '',
  job_id: parameters.get('job_id') ?? '',
  cursor: parameters.get('cursor') ?? undefined,
});

async function view(visit: Visit, asked: Asked, press?: Press): Promise<View> {
  const { calls, origin } = visit;
  const error_message = press?.kind === 'error message' ? 'true' : 'false';
  const query = { ...asked, limit: ITEMS, error_message };
  const story = await calls.find(SHOW, Story, { query });
  const { source, job_id: jobId, cursor } = asked;
  if (story === undefined) return noJob(asked);
  const body = press?.kind === 'body' ? await shownBody(visit, press.of) : undefined;
  return {
    title: `Job ${seen(jobId)}`,
    heading: html`Job ${copyable(jobId)}`,
    body: html`${renderJob(story.job, asked, calls.may('createReplay'))}
${story.held_back && renderHeldBack(story.held_back, { job: asked, mayDecide: calls.may('retryEntries') })}
<h2>What happened</h2>
${renderTimeLine(story.items, {
  job: asked,
  mayRead: calls.may(BODY),
  mayDecide: calls.may('retryEntries'),
  isFirstPage: cursor === undefined,
  ...(body && { body }),
})}
${pager(asked, story.next_cursor)}`,
    sameAs: sameAs(origin, {
      command: ['jobs', 'show', source, jobId],
      path: address('/story', { ...asked, limit: ITEMS, error_message: 'false' }),
    }),
  };
}

type Press = { readonly kind: 'error message' } | { readonly kind: 'body'; readonly of: string };

const shownBody = async (visit: Visit, deliveryId: string): Promise<Shown> => ({
  of: deliveryId,
  content: renderBody(await readBodyOf(visit, deliveryId)),
});

const noJob = ({ job_id: jobId }: Asked): View =>
  missing(
    'job',
    html`Nothing is recorded of the job ${id(jobId)} in this source. Look for it <a href="${address('/console/jobs', { job_id: jobId })}">in all sources</a>, or <a href="${address('/console/jobs', { job_id_prefix: jobId })}">for jobs whose ids begin with it</a>.`,
  );

function renderJob(job: Story['job'], { source, job_id }: Asked, mayReplay: boolean): Content {
  const lists = ['deliveries', 'events', 'publications'].map(
    (name) => html`<a href="${address(`/console/${name}`, { source, job_id })}">All its ${name}</a>`,
  );
  const replay =
    mayReplay &&
    job !== null &&
    html`<a class="button" href="${address('/console/replays/new', { source, job_id })}">Replay …</a>`;
  return html`<p class="actions">${lists}${replay}</p>
${
  job === null
    ? html`<div class="notice warn"><p>It has no event yet: all its deliveries are in <a href="${address('/console/quarantine', { source, job_id })}">the quarantine</a>.</p></div>`
    : html`${renderContradiction(job)}${renderFacts([
        ['Source', job.source],
        ['Reported', state(job.state)],
        ['Error', id(job.error_code)],
        // A completed job has often told of less than 100 %: its last progress would say that it is not complete.
        [
          'Highest progress',
          job.completed_at === null && job.highest_progress !== null && `${job.highest_progress} %`,
        ],
        ['First seen (UTC)', utc(job.first_seen_at)],
        ['Last seen (UTC)', utc(job.last_seen_at)],
        ['Duration', duration(job.duration_ms)],
      ])}`
}`;
}

/** A job that has both ends: one word for its state would not say so. */
function renderContradiction({
  completed_at: completed,
  failed_at: failed,
}: NonNullable<Story['job']>): Content {
  if (completed === null || failed === null) return undefined;
  const ends = [
    [failed, html`failed at ${utc(failed)} UTC`],
    [completed, html`completed at ${utc(completed)} UTC`],
  ] as const;
  const [first, second] = ends.toSorted(([a], [b]) => Date.parse(a) - Date.parse(b));
  return html`<div class="notice warn"><p>Its sender contradicted itself: the job ${first?.[1]}, and then ${second?.[1]}. Each end is an event of its own; “Reported” is the later one.</p></div>`;
}

function pager({ source, job_id, cursor }: Asked, next: string | null): Content {
  if (cursor === undefined && next === null) return undefined;
  return html`<nav class="pager" aria-label="Pages of this story">
${cursor !== undefined && html`<a href="${jobHref(source, job_id)}">From the beginning</a> `}${
  next !== null &&
  html`<a class="next" rel="next" href="${address('/console/job', { source, job_id, cursor: next })}">Later steps</a>`
}
</nav>`;
}

export const jobPages: readonly Page[] = [
  get('/job', [SHOW], (visit) => view(visit, askedIn(visit.query))),
  post('/job', [SHOW, BODY], (visit) => {
    const of = visit.form.get('body');
    return view(visit, askedIn(visit.form), of === null ? { kind: 'error message' } : { kind: 'body', of });
  }),
];

export type Story = ReturnType<typeof Story.parse>;
