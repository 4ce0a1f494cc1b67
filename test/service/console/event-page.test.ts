// An event as a page, and the CloudEvent as a subscriber gets it: in the console, over the API and on the command line.

import { expect, test } from 'vitest';
import { address } from '../../../src/operators/kernel/view/links.ts';
import { listen, newExchange } from '../../support/bus.ts';
import { cliWith } from '../../support/cli.ts';
import { visitConsole } from '../../support/console.ts';
import { untilNonePending } from '../../support/facts.ts';
import { operators } from '../../support/operators.ts';
import { orderOne } from '../../support/orders.ts';
import { patience } from '../../support/patience.ts';
import { completed, deliver, failed, newJobId, progress } from '../../support/sender.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { OUTBOX } from '../../support/outbox.ts';
import { PUBLICATIONS } from '../../support/publications.ts';

type Sent = {
  body: string;
  routing_key: string;
  exchange: string;
  message_id: string;
  type: string;
  content_type: string;
  timestamp: string;
};

const readings = (relay: TestService) =>
  relay.database.query<{ subject: string; detail: string }>(
    `select subject, detail from operator_log where action = 'body.read' order by id`,
  );

test('the CloudEvent is byte for byte what a subscriber gets, and each reading is a line of the log', async () => {
  const exchange = newExchange();
  await using bus = await listen(exchange);
  await using relay = await startTestService({ exchange, env: { AMQP_ROUTING_PREFIX: 'job' } });
  const job = newJobId();
  const exact = `{"job_id":"${job}","status":"processing","progress_percentage":7,"estimated_completion":"2026-01-15T10:35:00Z","big":9223372036854775808,"rtl":"\u202e\\u0000</pre>"}`;
  await deliver(relay.webhooks, exact);
  await deliver(relay.webhooks, failed(job));
  await deliver(relay.webhooks, progress(job, 5)); // late
  await bus.received(3);
  const api = await operators(relay, { role: 'auditor' });

  for (const message of bus.messages) {
    const { status, body } = await api.get<Sent>(`/events/${encodeURIComponent(message.id)}/cloudevent`);
    expect([status, body.body]).toEqual([200, message.text]);
    expect(body).toMatchObject({
      exchange,
      routing_key: message.routingKey,
      message_id: message.id,
      type: message.properties['type'],
      content_type: message.properties['contentType'],
    });
    expect(Math.floor(Date.parse(body.timestamp) / 1_000)).toBe(message.properties['timestamp']);
  }
  const rows = await relay.database.query<{ id: string }>(
    'select delivery_id as id from events order by sequence',
  );
  expect(await readings(relay)).toEqual(
    rows.map(({ id }, at) => ({ subject: id, detail: JSON.stringify({ cloudevent: bus.messages[at]?.id }) })),
  );

  const cli = cliWith({ TALLYHOOK_URL: relay.operators, TALLYHOOK_TOKEN: api.value });
  const [first] = bus.messages;
  const printed = await cli.run('events', 'show', first?.id ?? '', '--cloudevent');
  expect([printed.code, printed.stdout]).toEqual([0, first?.text]);

  const visit = await visitConsole(relay, { role: 'auditor' });
  const page = await visit.get(address('/console/event', { id: first?.id ?? '' }));
  expect(page.html).not.toContain('9223372036854775808');
  const shown = await visit.submit(page.forms.find(({ text }) => text === 'Show the CloudEvent'));
  expect(shown.pres[0]).toContain('"big": 9223372036854775808,');
  expect(shown.pres[1]).toBe(first?.text.replace('\u202e', '⟨U+202E⟩'));
  const file = await visit.submit(shown.forms.find(({ text }) => text === 'Download'));
  expect(file.bytes.toString('utf8')).toBe(first?.text);
  expect(await readings(relay)).toHaveLength(6);
});

test('an event that was returned, or that a replay published, is the same', async () => {
  const exchange = newExchange();
  await using relay = await startTestService({ exchange });
  const job = newJobId();
  await deliver(relay.webhooks, completed(job));
  const isReturned = `select from ${OUTBOX} where state = 'returned'`;
  await expect.poll(() => relay.database.query(isReturned), { timeout: patience(15_000) }).toHaveLength(1);
  const api = await operators(relay);
  const read = async () => (await api.get<Sent>(`/events/default:${job}:completed/cloudevent`)).body.body;
  const before = await read();
  await using bus = await listen(exchange);
  await orderOne(api, 'outbox/retry', `default:${job}:completed`);
  await bus.received(1);
  await untilNonePending(relay.database);
  await api.post('/replays', { event_ids: [`default:${job}:completed`], note: 'again' });
  const [first, copy] = await bus.received(2);
  expect([first?.text, copy?.text, await read()]).toEqual([before, before, before]);
});

test('without the role, the event or its body there is no CloudEvent, and no line', async () => {
  await using relay = await startTestService();
  const job = newJobId();
  await deliver(relay.webhooks, completed(job));
  const isSent = `select from ${PUBLICATIONS} p`;
  await expect.poll(() => relay.database.query(isSent), { timeout: patience(15_000) }).toHaveLength(1);
  const path = `/events/default:${job}:completed/cloudevent`;
  const [viewer, limited, auditor] = await Promise.all([
    operators(relay, { role: 'viewer' }),
    operators(relay, { role: 'admin', sources: ['other'] }),
    operators(relay, { role: 'auditor' }),
  ]);
  expect((await viewer.get(path)).status).toBe(403);
  expect((await limited.get(path)).status).toBe(403);
  expect((await auditor.get('/events/default:none:completed/cloudevent')).status).toBe(404);
  await relay.database.query(`delete from outbox_held; update deliveries set body = null`);
  expect(await auditor.get(path)).toMatchObject({ status: 404, body: { error: 'body_not_kept' } });
  expect(await readings(relay)).toEqual([]);
  const visit = await visitConsole(relay, { role: 'viewer' });
  const page = await visit.get(`/console/event?id=default:${job}:completed`);
  expect(page.text).toContain('Only the role auditor and above may see the message.');
  for (const form of ['/console/event', '/console/event/download']) {
    expect((await visit.post(form, { id: `default:${job}:completed` })).status).toBe(403);
  }
});

test('an event shows its publications and the delivery that made it; one that there is not leads to its job', async () => {
  await using relay = await startTestService();
  const job = newJobId();
  await deliver(relay.webhooks, completed(job));
  await expect
    .poll(() => relay.database.query(`select from ${PUBLICATIONS} p`), { timeout: patience(15_000) })
    .toHaveLength(1);
  const visit = await visitConsole(relay, { role: 'viewer' });
  const page = await visit.get(`/console/event?id=default:${job}:completed`);
  const [row] = await relay.database.query<{ id: string }>('select id from deliveries');
  expect(page.text).toContain('returned');
  expect(page.links).toContainEqual({ href: `/console/deliveries/${row?.id}`, text: row?.id ?? '' });
  const none = await visit.get(`/console/event?id=default:${job}:failed`);
  expect([none.status, none.text]).toEqual([404, expect.stringContaining('There is no such event')]);
  expect(none.links.map(({ href }) => href)).toContain(`/console/jobs?job_id=${job}`);
});
