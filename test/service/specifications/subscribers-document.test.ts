// The AsyncAPI document that the running service serves, held against messages that a real broker delivered: body, headers,
// properties and routing key. And the documents as they are served, held against the committed ones.

// oxlint-disable vitest/no-standalone-expect -- `it` is vitest's test with a fixture, which the rule does not know

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { type AsyncApiDocument, asyncApiOf, faultsInDocument, toAmqp } from '../../support/asyncapi.ts';
import { type Bus, listen, newExchange } from '../../support/bus.ts';
import { untilNonePending } from '../../support/facts.ts';
import { type Operators, operators } from '../../support/operators.ts';
import { patience } from '../../support/patience.ts';
import { askFrom, fetchAfresh } from '../../support/requests.ts';
import { completed, deliver, failed, newJobId, progress } from '../../support/sender.ts';
import { startTestService, type TestService } from '../../support/service.ts';

type Running = { readonly relay: TestService; readonly bus: Bus; readonly operator: Operators };

/** One service for all, with an exchange of its own, as an operator may name it. */
const it = test.extend<{ running: Running }>({
  running: [
    // oxlint-disable-next-line no-empty-pattern -- vitest reads the names of what is needed from it
    async ({}, use) => {
      const exchange = newExchange();
      await using bus = await listen(exchange);
      // The documents name it.
      const env = { ANSWER_DEADLINE_MS: '5000' };
      await using relay = await startTestService({ exchange, env });
      await use({ relay, bus, operator: await operators(relay) });
    },
    { scope: 'file' },
  ],
});

const committed = (name: string) =>
  readFileSync(new URL(`../../../contracts/${name}`, import.meta.url), 'utf8');

const served = ({ relay }: Running, path: string, init?: Parameters<typeof fetchAfresh>[1]) =>
  fetchAfresh(`${relay.operators}/api/v1${path}`, init);

async function servedDocument(running: Running): Promise<AsyncApiDocument> {
  return (await (await served(running, '/asyncapi.json')).json()) as AsyncApiDocument;
}

it('every published message is what the document says: each kind, late progress, unknown fields', async ({
  running,
}) => {
  const { relay, bus } = running;
  const document = await servedDocument(running);
  const { faultsOf } = asyncApiOf(document);
  const [jobId, otherId] = [newJobId(), newJobId()];
  const strange = { region: 'eu', deep: [{ 'a"b': null }], big: 1e300 };

  await deliver(
    relay.webhooks,
    progress(jobId, 45, { estimated_completion: '2026-01-15T12:35:00.25+02:00' }),
  );
  await deliver(relay.webhooks, progress(jobId, 60, { estimated_completion: undefined, ...strange }));
  await deliver(relay.webhooks, completed(jobId, strange));
  await deliver(relay.webhooks, progress(jobId, 70));
  await deliver(relay.webhooks, failed(otherId, { ...strange, error_message: '' }));
  const messages = await bus.received(5);

  expect(faultsInDocument(document)).toEqual([]);
  expect(document.channels.events.bindings.amqp.exchange.name).toBe(relay.exchange);
  expect(messages.map(({ event }) => [event['type'], event['late']])).toEqual(
    expect.arrayContaining([
      ['conversion.job.progress', undefined],
      ['conversion.job.completed', undefined],
      ['conversion.job.progress', true],
      ['conversion.job.failed', undefined],
    ]),
  );
  expect(messages.flatMap((message) => faultsOf('events', toAmqp(message)))).toEqual([]);
  expect(messages.every(({ properties }) => isEmpty(properties['headers']))).toBe(true);
});

const isEmpty = (headers: unknown) => Object.keys(headers ?? {}).length === 0;

it('a replay’s copies are what the document says, sent to the exchange or to one queue', async ({
  running,
}) => {
  const { relay, bus, operator } = running;
  const { faultsOf } = asyncApiOf(await servedDocument(running));
  const jobId = newJobId();
  const eventId = `default:${jobId}:completed`;
  await using one = await listen(newExchange());
  await deliver(relay.webhooks, completed(jobId));
  await expect.poll(() => bus.ids()).toContain(eventId);
  await untilNonePending(relay.database);

  const everywhere = await operator.post('/replays', { event_ids: [eventId] });
  await expect.poll(() => ofEvent(bus, eventId), { timeout: patience(15_000) }).toHaveLength(2);
  const toOne = await operator.post('/replays', { event_ids: [eventId], queue: one.queue });
  const [copyToOne] = await one.received(1);

  const [first, copy] = ofEvent(bus, eventId);
  if (first === undefined || copy === undefined || copyToOne === undefined) throw new Error('all arrived');
  expect([copy.text, copyToOne.text]).toEqual([first.text, first.text]);
  expect([copy, copyToOne].map(({ properties }) => properties['headers'])).toEqual([
    { replay: everywhere.body['id'], replayed_by: operator.token.name },
    { replay: toOne.body['id'], replayed_by: operator.token.name },
  ]);
  expect(copyToOne.routingKey).toBe(one.queue);
  expect([...faultsOf('events', toAmqp(copy)), ...faultsOf('replayToOneQueue', toAmqp(copyToOne))]).toEqual(
    [],
  );
  expect(faultsOf('events', toAmqp(copyToOne))).not.toEqual([]);
});

const ofEvent = (bus: Bus, eventId: string) => bus.messages.filter(({ id }) => id === eventId);

it.for([
  ['/asyncapi.json', 'asyncapi.json'],
  ['/openapi.intake.json', 'openapi.intake.json'],
  ['/openapi.json', 'openapi.operators.json'],
] as const)(
  '%s is the committed contracts/%s, with the names that are configured',
  async (pair, { running }) => {
    const [path, name] = pair;
    const answer = await served(running, path);

    const text = committed(name).replaceAll('conversion.events', running.relay.exchange);
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(await answer.json()).toEqual(JSON.parse(text));
  },
);

it('the JSON Schemas are served as they are committed, to the byte, and listed', async ({ running }) => {
  const { items } = (await (await served(running, '/schemas')).json()) as {
    items: { name: string; id: string }[];
  };
  expect(items.map(({ name }) => name)).toEqual(
    expect.arrayContaining([
      'events/completed.v1.json',
      'events/envelope.v1.json',
      'events/failed.v1.json',
      'events/progress.v1.json',
      'notifications/completed.v1.json',
    ]),
  );
  for (const { name, id } of items) {
    const answer = await served(running, `/schemas/${name}`);
    const text = await answer.text();
    expect(text).toBe(committed(name));
    expect(JSON.parse(text)).toMatchObject({ $id: id });
    expect(answer.headers.get('content-type')).toBe('application/schema+json; charset=utf-8');
    expect(answer.headers.get('cache-control')).toBe('private, max-age=86400, immutable');
  }
});

it('each opens without a token, is not sent again to those who have it, and takes reads alone', async ({
  running,
}) => {
  for (const path of [
    '/asyncapi.json',
    '/openapi.intake.json',
    '/openapi.json',
    '/schemas',
    '/schemas/events/failed.v1.json',
  ]) {
    const whole = await served(running, path);
    expect(whole.status).toBe(200);
    const tag = whole.headers.get('etag') ?? '';
    const ifNot = async (known: string) =>
      (await askFrom(`${running.relay.operators}/api/v1${path}`, { headers: { 'If-None-Match': known } }))
        .status;
    expect([await ifNot(tag), await ifNot('"another"')]).toEqual([304, 200]);
    expect((await served(running, path, { method: 'HEAD' })).status).toBe(200);
    const written = await served(running, path, { method: 'PUT' });
    expect([written.status, written.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
    const wrong = await served(running, path, { headers: { Authorization: 'Bearer thk_test_wrong' } });
    expect(wrong.status).toBe(401);
  }
});

it.for([
  '/schemas/none',
  '/schemas/events/none.v1.json',
  '/schemas/released.json',
  '/schemas/..%2Freleased.json',
  '/schemas/events/..%2F..%2Fpackage.json',
  '/schemas/events/constructor',
])('%s is no schema: 404', async (path, { running }) => {
  const answer = await served(running, path);
  expect(answer.status).toBe(404);
  expect(await answer.json()).toMatchObject({ error: 'not_found' });
});

it('the documentation page leads to all of them', async ({ running }) => {
  const page = await (await served(running, '/docs')).text();
  for (const name of ['openapi.json', 'openapi.intake.json', 'asyncapi.json', 'schemas']) {
    expect(page).toContain(`href="${name}"`);
  }
});
