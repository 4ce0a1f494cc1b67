// Replays in the console: the form shows its dry run, the button acts on what was shown, and the replay's page steers it.

import { expect, test } from 'vitest';
import { listen, newExchange } from '../../support/bus.ts';
import { type PageAnswer, visitConsole } from '../../support/console.ts';
import { untilNonePending } from '../../support/facts.ts';
import { completed, deliver, failed, newJobId } from '../../support/sender.ts';
import { startTestService } from '../../support/service.ts';
import { until } from '../../support/until.ts';

const NEW = '/console/replays/new';
const orderForm = (page: PageAnswer) =>
  page.forms.find((form) => form.action === NEW && form.method === 'post');

test("one subscriber's day is replayed to its queue: as many as the preview said, and none that came since", async () => {
  const exchange = newExchange();
  await using bus = await listen(exchange);
  await using billing = await listen(exchange, { bindings: [] });
  await using relay = await startTestService({ exchange });
  const jobs = [newJobId(), newJobId(), newJobId()];
  for (const job of jobs) await deliver(relay.webhooks, completed(job));
  await deliver(relay.webhooks, failed(newJobId()));
  await bus.received(4);
  await untilNonePending(relay.database);
  const visit = await visitConsole(relay, { role: 'operator' });

  const address = `${NEW}?kind=completed&from=24h&queue=${billing.queue}&note=lost%20its%20disk`;
  const preview = await visit.get(address);
  expect(preview.text).toContain(`Replay 3 events to the queue ${billing.queue}`);
  for (const job of jobs) expect(preview.text).toContain(job);
  expect(await relay.database.query('select from replays')).toEqual([]);
  expect(await relay.database.query(`select from operator_log where action <> 'session.create'`)).toEqual([]);

  await deliver(relay.webhooks, completed(newJobId()));
  await bus.received(5);
  const made = await visit.submit(orderForm(preview));
  const again = await visit.submit(orderForm(preview));

  expect(made.status).toBe(303);
  expect(again.location).toBe(made.location);
  await billing.received(3);
  const finished = await until(
    'the replay has finished',
    async () => {
      const page = await visit.get(made.location ?? '');
      return page.text.includes('finished') ? page : undefined;
    },
    { limitMs: 15_000 },
  );
  expect(finished.text).toContain('3 of 3');
  expect(finished.text).toContain('lost its disk');
  expect(billing.messages.map(({ event }) => event.data['job_id'])).toEqual(jobs);
  expect(await relay.database.query('select from replays')).toHaveLength(1);
  expect((await visit.get('/console/replays')).text).toContain('lost its disk');
});

test('events are named by their ids, and the form keeps what was typed', async () => {
  await using relay = await startTestService();
  const job = newJobId();
  await deliver(relay.webhooks, completed(job));
  const visit = await visitConsole(relay, { role: 'operator' });
  const id = `default:${job}:completed`;

  const preview = await visit.get(
    `${NEW}?event_ids=${encodeURIComponent(`${id}\n\n${id}`)}&rate_per_second=7`,
  );

  expect(preview.text).toContain('Replay 1 event to the exchange');
  const form = preview.forms.find((each) => each.action === NEW && each.method === 'get');
  expect(form?.fields).toMatchObject({ event_ids: id, rate_per_second: '7' });
  const made = await visit.submit(orderForm(preview));
  const shown = await visit.get(made.location ?? '');
  expect(shown.text).toContain(id);
  expect(shown.text).toContain('7 copies per second');
});

test.for([
  ['kind=completed&event_ids=default%3Aa%3Acompleted', 400, 'leave this empty, or the filters'],
  ['event_ids=nothing', 400, 'must be the id of an event'],
  ['event_ids=default%3Ajob_x%3Acompleted', 404, 'here is no event default:job_x:completed'],
  ['kind=completed&rate_per_second=many', 400, 'Copies per second must be a number'],
  ['kind=completed&rate_per_second=5000', 400, 'Copies per second must be at most 1,000'],
  ['from=yesterday', 400, 'From (UTC) write 2026-01-31'],
  ['kind=completed&queue=amq.rabbitmq.reply-to', 400, 'queue'],
] as const)('%s is refused beside the form, which keeps it', async ([query, status, words]) => {
  await using relay = await startTestService();
  const visit = await visitConsole(relay, { role: 'operator' });

  const page = await visit.get(`${NEW}?${query}`);

  expect(page.status).toBe(status);
  expect(page.text).toContain(words);
  expect(page.forms.some(({ action }) => action === NEW)).toBe(true);
  expect(orderForm(page)).toBeUndefined();
});

test('what the form of a replay asks wrongly is marked at its fields', async () => {
  await using relay = await startTestService();
  const visit = await visitConsole(relay, { role: 'operator' });
  const filters = await visit.get(`${NEW}?from=bad&kind=nope`);
  expect([filters.status, filters.text]).toEqual([
    400,
    expect.stringContaining('see the fields that are marked'),
  ]);
  expect(filters.html).toMatch(
    /name="from" value="bad"[^>]* aria-invalid="true"[^>]*> <span[^>]*>write 2026/,
  );
  expect(filters.html).toMatch(/id="fault-of-kind">must be one of progress, completed, failed</);
  const options = await visit.get(`${NEW}?event_ids=default:a:completed%0Ax&rate_per_second=99999`);
  expect(options.html).toMatch(/id="fault-of-event_ids">line 2 must be the id of an event, as default:/);
  expect(options.html).toMatch(/id="fault-of-rate_per_second">must be at most 1,000</);
});

test('without a filter nothing is previewed; where nothing matches there is no button', async () => {
  await using relay = await startTestService();
  const visit = await visitConsole(relay, { role: 'operator' });
  expect((await visit.get(NEW)).text).toContain('Enter event ids or choose filters');
  const page = await visit.get(`${NEW}?kind=failed`);
  expect(page.text).toContain('No events match');
  expect(orderForm(page)).toBeUndefined();
});

test('a replay is paused, resumed and, after a page that asks, cancelled; each leaves one line', async () => {
  await using relay = await startTestService();
  for (let count = 0; count < 3; count++) await deliver(relay.webhooks, completed(newJobId()));
  const visit = await visitConsole(relay, { role: 'operator' });
  // One a second: it runs long enough.
  const preview = await visit.get(`${NEW}?kind=completed&rate_per_second=1`);
  const { location = '' } = await visit.submit(orderForm(preview));
  const form = async (change: string) =>
    (await visit.get(location)).forms.find(({ action }) => action === `${location}/${change}`);

  const pause = await form('pause');
  expect((await visit.submit(pause)).location).toBe(location);
  await visit.submit(pause);
  expect((await visit.get(location)).text).toContain('Paused by an operator');
  expect(await form('pause')).toBeUndefined();
  await visit.submit(await form('resume'));
  expect((await visit.get(location)).html).toContain('data-refresh="2"');
  const confirm = await visit.get(`${location}/cancel`);
  expect(confirm.text).toContain('Cancel this replay?');
  await visit.submit(confirm.forms.find(({ action }) => action === `${location}/cancel`));

  const shown = await visit.get(location);
  expect(shown.text).toContain('cancelled');
  expect(shown.html).not.toContain('data-refresh');
  const rows = await relay.database.query(
    `select action from operator_log where action like 'replay.%' order by id`,
  );
  expect(rows.map(({ action }) => action)).toEqual([
    'replay.create',
    'replay.pause',
    'replay.resume',
    'replay.cancel',
  ]);
});
