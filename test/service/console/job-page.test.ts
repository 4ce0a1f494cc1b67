// A job's story as a page.

// oxlint-disable vitest/no-standalone-expect -- `it` is vitest's test with a fixture, which the rule does not know

import { expect } from 'vitest';
import { address } from '../../../src/operators/kernel/view/links.ts';
import { IS_SHORT_RUN } from '../../only-in-all.ts';
import { type Apart, listenApart, testApart as it } from '../../support/apart.ts';
import { type Visit, visitConsole } from '../../support/console.ts';
import { createFolder } from '../../support/folder.ts';
import { operators } from '../../support/operators.ts';
import { orderOne } from '../../support/orders.ts';
import { patience } from '../../support/patience.ts';
import { PUBLICATIONS } from '../../support/publications.ts';
import { completed, deliver, failed, newJobId, progress } from '../../support/sender.ts';
import { until } from '../../support/until.ts';
import { paste } from '../../support/shell.ts';

const PATIENCE = { timeout: patience(15_000) };

const hrefOf = ({ source }: Apart, job: string) => address('/console/job', { source, job_id: job });

/** Of this visitor. */
const readings = ({ relay }: Apart, { token }: Visit) =>
  relay.database.query<{ subject: string; detail: string | null }>(
    `select subject, detail from operator_log where action = 'body.read' and actor = $1 order by id`,
    [token.name],
  );

const published = ({ relay, source }: Apart, count: number) =>
  expect
    .poll(() => relay.database.query(`select from ${PUBLICATIONS} p where source = $1`, [source]), PATIENCE)
    .toHaveLength(count);

/** In the order of the page: what each step is. */
const stepsOf = (html: string) =>
  [
    ...html.matchAll(
      /<strong>(?:<a [^>]*>)?([^<]*)(?:<\/a>)?<\/strong> (?:<span class="state \w+">([^<]*)<\/span>|<code>([^<]*)<\/code>)?/g,
    ),
  ].map(([, what, state, action]) => `${what} ${state ?? action ?? ''}`.trim());

it('a job and its event lead to a replay of them', async ({ apart }) => {
  const job = newJobId();
  await deliver(apart.webhooks, completed(job));
  const visit = await visitConsole(apart.relay, { role: 'operator' });
  const replay = { text: 'Replay …', href: `/console/replays/new?source=${apart.source}&job_id=${job}` };
  expect((await visit.get(hrefOf(apart, job))).links).toContainEqual(replay);
  const eventId = `${apart.source}:${job}:completed`;
  expect((await visit.get(address('/console/event', { id: eventId }))).links).toContainEqual({
    text: 'Replay …',
    href: address('/console/replays/new', { event_ids: eventId }),
  });
});

it('a job that failed and then completed says that its sender contradicted itself', async ({ apart }) => {
  const job = newJobId();
  const visit = await visitConsole(apart.relay, { role: 'viewer' });
  await deliver(apart.webhooks, failed(job));
  expect((await visit.get(hrefOf(apart, job))).text).not.toContain('contradicted');
  await deliver(apart.webhooks, completed(job));
  expect((await visit.get(hrefOf(apart, job))).text).toMatch(
    /Its sender contradicted itself: the job failed at .* UTC, and then completed at .* UTC\./,
  );
});

it('a job’s story is on one page: deliveries, events, publications, a replay and an operator', async ({
  apart,
}) => {
  const { relay, source } = apart;
  await using bus = await listenApart(apart, ['progress']);
  const api = await operators(relay, { name: 'Ada' });
  const job = newJobId();
  await deliver(apart.webhooks, progress(job, 40));
  await published(apart, 1);
  await deliver(apart.webhooks, progress(job, 40));
  await deliver(apart.webhooks, completed(job));
  await published(apart, 2);
  await bus.channel.bindQueue(bus.queue, relay.exchange, `job.completed.${source}`);
  expect((await orderOne(api, 'outbox/retry', `${apart.source}:${job}:completed`)).result).toBe('retried');
  await published(apart, 3);
  await api.post('/replays', { event_ids: [`${apart.source}:${job}:completed`], note: 'billing lost it' });
  await published(apart, 4);
  const visit = await visitConsole(apart.relay, { role: 'viewer' });

  await expect
    .poll(async () => stepsOf((await visit.get(hrefOf(apart, job))).html), PATIENCE)
    .toContain('Replay finished');
  const page = await visit.get(hrefOf(apart, job));

  expect(stepsOf(page.html)).toEqual([
    'Delivery accepted',
    'Event progress',
    'Publication confirmed',
    'Delivery duplicate',
    'Delivery accepted',
    'Event completed',
    'Publication returned',
    'Ada outbox.retry',
    'Publication confirmed',
    'Replay finished',
    'Publication confirmed',
  ]);
  expect(page.text).toContain('by Ada');
  expect(page.text).toContain('billing lost it');
  for (const name of ['deliveries', 'events', 'publications']) {
    const link = page.links.find(({ text }) => text === `All its ${name}`);
    expect(link?.href).toBe(`/console/${name}?source=${source}&job_id=${job}`);
    expect((await visit.get(link?.href ?? '')).status).toBe(200);
  }
  // An event leads to the delivery that made it, on this page.
  const target = page.links.find(({ text }) => text === 'its delivery')?.href.slice(1) ?? '';
  expect(page.html).toContain(`id="${target}"`);
});

it('what a job reported and what is on the bus are told apart, with why and where one decides', async ({
  apart,
}) => {
  const { relay, source } = apart;
  const job = newJobId();
  await deliver(apart.webhooks, progress(job, 40));
  await deliver(apart.webhooks, completed(job)); // no queue is bound, so both are returned
  await deliver(apart.webhooks, { ...completed(job), status: 'archived' });
  const visit = await visitConsole(relay, { role: 'viewer' });
  const stateOf = async () => (await visit.get(hrefOf(apart, job))).text;
  await expect.poll(stateOf, PATIENCE).toMatch(/processing:40, returned since .*completed, returned since /s);

  const page = await visit.get(hrefOf(apart, job));

  expect(page.text).toMatch(/Reported completed/);
  expect(page.text).toContain('no queue is bound');
  expect(page.text).toMatch(/In quarantine.*archived of /s);
  expect(page.links).toContainEqual({
    text: 'See it in the outbox',
    href: address('/console/outbox', { source, job_id: job }),
  });
  const operator = await visitConsole(relay, { role: 'operator' });
  const texts = (await operator.get(hrefOf(apart, job))).links.map(({ text }) => text);
  expect(texts).toContain('Decide on it in the outbox');
  expect(texts).toContain('Release or discard it in the quarantine');
});

it('what happened long after is told as a gap, and a long story goes from page to page', async ({
  apart,
}) => {
  const job = newJobId();
  for (let at = 0; at < 40; at++) await deliver(apart.webhooks, progress(job, at));
  await published(apart, 40);
  await apart.relay.database.query(
    `update publications set published_at = published_at + interval '3 hours 5 minutes' where source = $1`,
    [apart.source],
  );
  const visit = await visitConsole(apart.relay, { role: 'viewer' });
  const steps: string[] = [];
  let next: string | undefined = hrefOf(apart, job);
  let pages = 0;
  let text = '';
  while (next !== undefined) {
    const page = await visit.get(next);
    steps.push(...stepsOf(page.html));
    text += page.text;
    next = page.links.find((link) => link.text === 'Later steps')?.href;
    pages += 1;
  }
  expect(pages).toBe(2);
  const ofKind = (kind: string) => steps.filter((step) => step.startsWith(kind)).length;
  expect([ofKind('Delivery'), ofKind('Event'), ofKind('Publication'), ofKind('In the outbox')]).toEqual([
    40, 40, 40, 40,
  ]);
  expect(text).toMatch(/3 h [45] min later/);
});

it('looking reads no body; a press shows the error message, or a body beside its delivery, with a line in the log', async ({
  apart,
}) => {
  const job = newJobId();
  await deliver(
    apart.webhooks,
    failed(job, { error_message: 'a <b>crooked\u202e</b> file', n: '9'.repeat(20) }),
  );
  const visit = await visitConsole(apart.relay, { role: 'auditor' });

  const page = await until(
    'no queue has received the event',
    async () => {
      const found = await visit.get(hrefOf(apart, job));
      return stepsOf(found.html).includes('In the outbox returned') ? found : undefined;
    },
    { limitMs: 15_000 },
  );
  expect(page.html).not.toContain('crooked');
  expect(await readings(apart, visit)).toEqual([]);

  const message = await visit.submit(page.forms.find(({ text }) => text === 'Show the error message'));
  expect([message.status, message.text]).toEqual([200, expect.stringContaining('a <b>crooked�</b> file')]);
  expect(await readings(apart, visit)).toEqual([
    expect.objectContaining({ detail: '{"field":"error_message"}' }),
  ]);

  const body = await visit.submit(page.forms.find(({ text }) => text === 'Show the body'));
  expect(body.status).toBe(200);
  expect(body.pres[0]).toContain(`"n": "${'9'.repeat(20)}"`);
  expect(body.pres[0]).toContain('a <b>crooked⟨U+202E⟩</b> file');
  expect(body.html).not.toContain('<b>crooked');
  expect(await readings(apart, visit)).toHaveLength(2);
  expect(stepsOf(body.html)).toEqual(stepsOf(page.html));
});

it('a viewer is offered no body, and asking for one is a 403 that reads nothing', async ({ apart }) => {
  const job = newJobId();
  await deliver(apart.webhooks, failed(job));
  const visit = await visitConsole(apart.relay, { role: 'viewer' });
  const page = await visit.get(hrefOf(apart, job));
  expect(page.forms.map(({ action }) => action)).toEqual(['/console/search', '/console/sign-out']);
  const [row] = await apart.relay.database.query<{ id: string }>(
    'select id from deliveries where job_id = $1',
    [job],
  );
  const form = { source: apart.source, job_id: job };
  expect((await visit.post('/console/job', form)).status).toBe(403);
  expect((await visit.post('/console/job', { ...form, body: row?.id ?? '' })).status).toBe(403);
  expect(await readings(apart, visit)).toEqual([]);
});

it.skipIf(IS_SHORT_RUN)(
  'an id that no path can hold, or that is markup, has its page, and the same lines for a shell',
  async ({ apart }) => {
    await using folder = await createFolder();
    const visit = await visitConsole(apart.relay, { role: 'viewer' });
    for (const job of ['..', '-rf', `'"$(id)<script>alert(1)</script>&amp;`]) {
      await deliver(apart.webhooks, completed(job));
      const list = await visit.get(address('/console/jobs', { job_id: job }));
      const page = await visit.get(list.links.find(({ text }) => text === job)?.href ?? '');
      expect([page.status, stepsOf(page.html).slice(0, 2)]).toEqual([
        200,
        ['Delivery accepted', 'Event completed'],
      ]);
      expect(page.text).toContain(`Job ${job}`);
      expect(page.html).not.toContain('<script>alert');
      const shell = { operators: apart.relay.operators, token: visit.value, folder: folder.path('.') };
      const [command, curl] = page.pres.slice(-2);
      const [told, ...items] = (await paste(command ?? '', shell))
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as { job?: { job_id: string } });
      const answer = JSON.parse(await paste(curl ?? '', shell)) as {
        job: { job_id: string };
        items: unknown[];
      };
      expect([told?.job?.job_id, answer.job.job_id]).toEqual([job, job]);
      expect(items.length).toBe(answer.items.length);
    }
  },
);

it('a job that there is not is a 404 that leads on', async ({ apart }) => {
  const visit = await visitConsole(apart.relay, { role: 'viewer' });
  const page = await visit.get(hrefOf(apart, 'job_none'));
  expect([page.status, page.text]).toEqual([404, expect.stringContaining('There is no such job')]);
  expect(page.links.map(({ href: to }) => to)).toContain('/console/jobs?job_id_prefix=job_none');
  expect((await visit.get('/console/job?source=default')).status).toBe(400);
});
