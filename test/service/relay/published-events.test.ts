import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { expect, test } from 'vitest';
import { parseEvent } from '../../../src/event/index.ts';
import { listen, newExchange } from '../../support/bus.ts';
import { poison } from '../../support/exact-json.ts';
import { completed, deliver, failed, newJobId, progress } from '../../support/sender.ts';
import { startTestService } from '../../support/service.ts';

function createValidator() {
  const ajv = new Ajv2020({ allErrors: true });
  addFormats.default(ajv);
  for (const name of ['envelope', 'completed', 'failed', 'progress']) {
    const url = new URL(`../../../contracts/events/${name}.v1.json`, import.meta.url);
    ajv.addSchema(JSON.parse(readFileSync(url, 'utf8')) as object);
  }
  return ajv;
}

test('each published event keeps the JSON Schema that it names, unknown fields included', async () => {
  const exchange = newExchange();
  await using bus = await listen(exchange);
  await using relay = await startTestService({ exchange });
  const jobId = newJobId();
  await deliver(
    relay.webhooks,
    progress(jobId, 45, { estimated_completion: '2026-01-15T12:35:00.25+02:00', region: 'eu' }),
  );
  await deliver(relay.webhooks, completed(jobId, { checksum: { sha256: 'ab' } }));
  await deliver(relay.webhooks, failed(newJobId()));

  const ajv = createValidator();
  const messages = await bus.received(3);

  for (const { event } of messages) {
    const validate = ajv.getSchema(String(event['dataschema']));
    expect(validate?.(event.data)).toBe(true);
    expect(ajv.validate('urn:tallyhook:schema:envelope:1', event)).toBe(true);
    expect(parseEvent(event)).toMatchObject({ outcome: 'event' });
  }
  const found = messages.find(({ id }) => id === `default:${jobId}:processing:45`);
  expect(found?.event.data).toMatchObject({
    estimated_completion: '2026-01-15T10:35:00.25Z',
    progress_percentage: 45,
    region: 'eu',
  });
});

test('keys with escapes arrive on the bus as they were signed, in a process where JSON.parse mangles them', async () => {
  const exchange = newExchange();
  await using bus = await listen(exchange);
  await using relay = await startTestService({ exchange });
  const known = JSON.stringify(completed(newJobId())).slice(1, -1);
  const body = `{${known},"deep":[{"published":1,"\\u00e9\\n":3}],"\\u0041":2}`;
  poison(`${known},"deep":[]`, '\\u0041');
  poison('"published":1', '\\u00e9\\n');
  expect(JSON.parse(body)).toMatchObject({ deep: [{ '\\u': 3 }], '\\': 2 });

  await deliver(relay.webhooks, body);

  const [message] = await bus.received(1);
  const { data } = message?.event ?? {};
  expect(data).toEqual({
    ...(JSON.parse(`{${known}}`) as object),
    A: 2,
    deep: [{ published: 1, 'é\n': 3 }],
  });
});
