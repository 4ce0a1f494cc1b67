// The AsyncAPI document of the events: valid by the specification's own schema, whole in itself, and true of its own examples.

import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { KINDS } from '../../../src/event/index.ts';
import { createAsyncApiDocument } from '../../../src/specifications/index.ts';
import { messageOf, sampleEvent } from '../../../src/testing/index.ts';
import {
  type AmqpMessage,
  type AsyncApiDocument,
  asyncApiOf,
  faultsInDocument,
} from '../../support/asyncapi.ts';

const BUS = { exchange: 'conversion.events', routingPrefix: 'job' };
// oxlint-disable-next-line typescript/no-explicit-any -- it is taken apart at will
const newDocument = (): any => structuredClone(createAsyncApiDocument(BUS));
const document = newDocument() as AsyncApiDocument;
const { faultsOf, faultsOfPart } = asyncApiOf(document);

/** A property of this name is an object and stays. */
const withoutWords = (form: object): unknown =>
  JSON.parse(
    JSON.stringify(form, (key, value: unknown) =>
      (key === 'description' || key === 'title') && typeof value === 'string' ? undefined : value,
    ),
  );

/** A message as the broker would deliver it. */
function delivered(
  event: ReturnType<typeof sampleEvent>,
  change: { readonly properties?: object; readonly headers?: object } = {},
): AmqpMessage {
  const { routingKey, properties } = messageOf(event);
  return {
    routing_key: routingKey,
    payload: event,
    headers: change.headers ?? {},
    properties: {
      message_id: properties.messageId,
      content_type: properties.contentType,
      type: properties.type,
      delivery_mode: 2,
      timestamp: properties.timestamp,
      app_id: properties.appId,
      ...change.properties,
    },
  };
}

describe('the document', () => {
  test('is valid by AsyncAPI’s own JSON Schema of version 3.1', () => {
    expect(document.asyncapi).toBe('3.1.0');
    expect(faultsInDocument(document)).toEqual([]);
  });

  test.for([
    ['a binding’s exchange', (d) => (d.channels.events.bindings.amqp.exchange.type = 'topik')],
    ['a binding’s version', (d) => (d.channels.events.bindings.amqp.bindingVersion = '9')],
    ['a message’s binding', (d) => (d.components.messages.failed.bindings.amqp.replyTo = 'x')],
    ['an operation’s action', (d) => (d.operations.publishEvents.action = 'publish')],
    ['an operation’s binding', (d) => (d.operations.publishEvents.bindings.amqp.deliveryMode = 3)],
    ['a message inside an operation', (d) => (d.operations.publishEvents.messages[0] = { name: 'x' })],
    ['a parameter', (d) => (d.channels.events.parameters.kind.schema = {})],
    ['a form', (d) => (d.components.schemas.Envelope.type = 'strange')],
    ['an example', (d) => (d.components.messages.failed.examples[0] = { name: 'x' })],
    ['a server without a protocol', (d) => delete d.servers.broker.protocol],
  ] satisfies [string, (document: ReturnType<typeof newDocument>) => unknown][])(
    'a fault in %s is found',
    ([, spoil]) => {
      const spoilt = newDocument();
      spoil(spoilt);
      expect(faultsInDocument(spoilt)).not.toEqual([]);
    },
  );

  test('every reference in it leads to something in it', () => {
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]*)"/g)].map(
      ([, pointer = '']) => pointer,
    );
    expect(references.length).toBeGreaterThan(20);
    for (const pointer of references) {
      const [root, ...steps] = pointer.split('/');
      const target = steps.reduce<unknown>((at, step) => (at as Record<string, unknown>)?.[step], document);
      expect({ pointer, root, found: typeof target }).toEqual({ pointer, root: '#', found: 'object' });
    }
  });

  test('names the exchange and the first word of the routing keys as they are configured', () => {
    const { channels, ...rest } = createAsyncApiDocument({
      exchange: 'team.events',
      routingPrefix: 'video',
    }) as unknown as AsyncApiDocument;
    expect(channels.events.address).toBe('video.{kind}.{source}');
    expect(channels.events.bindings.amqp.exchange.name).toBe('team.events');
    expect(JSON.stringify({ channels, rest })).not.toMatch(/conversion\.events|`job\./);
  });

  test.for([
    ['Envelope', 'envelope'],
    ['CompletedData', 'completed'],
    ['FailedData', 'failed'],
    ['ProgressData', 'progress'],
  ] as const)('%s is what contracts/events/%s.v1.json says, but for words', ([name, file]) => {
    const url = new URL(`../../../contracts/events/${file}.v1.json`, import.meta.url);
    const { $schema: _, $id: __, ...form } = JSON.parse(readFileSync(url, 'utf8')) as Record<string, unknown>;
    expect(withoutWords(newDocument().components.schemas[name])).toEqual(withoutWords(form));
  });
});

describe('its messages', () => {
  test.for([...KINDS])('of the kind %s: every example keeps the forms', (kind) => {
    const { examples } = document.components.messages[kind] ?? { examples: [] };
    expect(examples.map(({ name }) => name)).toEqual([
      'first',
      'copy',
      ...(kind === 'progress' ? ['late'] : []),
    ]);
    for (const { payload, headers = {} } of examples) {
      expect(faultsOfPart(kind, 'payload', payload)).toEqual([]);
      expect(faultsOfPart(kind, 'headers', headers)).toEqual([]);
    }
  });

  test.for([...KINDS])('of the kind %s: a message that keeps the document has no fault', (kind) => {
    expect(faultsOf('events', delivered(sampleEvent({ kind, source: 'team-a' })))).toEqual([]);
  });

  const event = sampleEvent({ kind: 'failed' });
  test.for([
    ['another type', { ...event, type: 'conversion.job.paused' }],
    ['the type of another kind', { ...event, type: 'conversion.job.completed' }],
    ['another version of the data', { ...event, dataschema: 'urn:tallyhook:schema:conversion.job.failed:2' }],
    ['a missing attribute', { ...event, sequence: undefined }],
    ['a missing field', { ...event, data: { ...event.data, error_code: undefined } }],
    ['a field of another type', { ...event, data: { ...event.data, progress_percentage: '30' } }],
  ] as const)('a payload with %s is told apart', ([, spoilt]) => {
    const asParsed = JSON.parse(JSON.stringify(spoilt)) as typeof event;
    expect(faultsOf('events', delivered(asParsed))).toHaveLength(1);
  });

  test.for([
    ['half of a replay’s headers', { headers: { replay: crypto.randomUUID() } }],
    ['a replay that is no id', { headers: { replay: '1', replayed_by: 'x' } }],
    ['another content type', { properties: { content_type: 'application/json' } }],
    ['no id', { properties: { message_id: undefined } }],
    ['another time', { properties: { timestamp: 1 } }],
    ['another delivery mode', { properties: { delivery_mode: 1 } }],
    ['another type', { properties: { type: 'conversion.job.completed' } }],
  ] satisfies [string, Parameters<typeof delivered>[1]][])(
    'a message with %s is told apart',
    ([, change]) => {
      expect(faultsOf('events', delivered(event, change))).not.toEqual([]);
    },
  );

  test.for(['job.completed.default', 'job.failed.team-b', 'job.failed', 'other.failed.default'])(
    'a message of the kind failed with the routing key %s is told apart',
    (routingKey) => {
      expect(faultsOf('events', { ...delivered(event), routing_key: routingKey })).not.toEqual([]);
    },
  );

  test('headers that the broker adds are no fault', () => {
    const headers = { 'x-delivery-count': 2, 'x-death': [{ count: 1, queue: 'billing' }] };
    expect(faultsOf('events', delivered(event, { headers }))).toEqual([]);
  });

  test('every message that was ever published as an example is what the document says', () => {
    const folder = new URL('../../../contracts/examples/messages/', import.meta.url);
    const names = readdirSync(folder);
    expect(names.length).toBeGreaterThan(3);
    for (const name of names) {
      const text = readFileSync(new URL(name, folder), 'utf8');
      const message = JSON.parse(text) as AmqpMessage & { readonly exchange: string };
      const channel = message.exchange === '' ? 'replayToOneQueue' : 'events';
      expect({ name, faults: faultsOf(channel, message) }).toEqual({ name, faults: [] });
    }
  });
});
