// The AsyncAPI document as a subscriber's tests would use it: whether the document is valid by AsyncAPI's own schema, and how a
// message of the bus differs from what it describes: its payload, its headers, its properties and its routing key.

import specifications from '@asyncapi/specs';
import { Ajv, type ErrorObject } from 'ajv';
import formats from 'ajv-formats';
import type { BusMessage } from './bus.ts';

type Reference = { readonly $ref: string };
type Channel = {
  readonly address: string;
  readonly messages: Readonly<Record<string, Reference>>;
  readonly parameters: Readonly<Record<string, { readonly enum?: readonly string[] }>>;
  readonly bindings: { readonly amqp: { readonly exchange: { readonly name: string } } };
};
type Example = { readonly name: string; readonly payload: object; readonly headers?: object };
type Message = {
  readonly name: string;
  readonly contentType: string;
  readonly bindings: { readonly amqp: { readonly messageType: string } };
  readonly examples: readonly Example[];
};
export type AsyncApiDocument = {
  readonly asyncapi: string;
  readonly channels: Readonly<Record<'events' | 'replayToOneQueue', Channel>>;
  readonly components: { readonly messages: Readonly<Record<string, Message>> };
};

const newAjv = () => {
  const ajv = new Ajv({ strict: false, allErrors: true });
  formats.default(ajv);
  return ajv;
};

const inWords = (errors: readonly ErrorObject[] | null | undefined) =>
  (errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);

let isAsyncApi: ReturnType<Ajv['compile']> | undefined;

/** What AsyncAPI's own schema of version 3.1 finds wrong. */
export function faultsInDocument(document: object): string[] {
  isAsyncApi ??= newAjv().compile(specifications.schemasWithoutId['3.1.0'] as object);
  return isAsyncApi(document) ? [] : inWords(isAsyncApi.errors);
}

/** A message by the names that AMQP 0-9-1 has for its parts, as in contracts/examples/messages. */
export type AmqpMessage = {
  readonly routing_key: string;
  readonly properties: Readonly<Record<string, unknown>>;
  readonly headers: object;
  readonly payload: Readonly<Record<string, unknown>>;
};

/** The properties by amqplib's names. */
const PROPERTIES = [
  ['message_id', 'messageId'],
  ['content_type', 'contentType'],
  ['type', 'type'],
  ['delivery_mode', 'deliveryMode'],
  ['timestamp', 'timestamp'],
  ['app_id', 'appId'],
] as const;

export const toAmqp = ({ routingKey, properties, event }: BusMessage): AmqpMessage => ({
  routing_key: routingKey,
  properties: Object.fromEntries(
    PROPERTIES.map(([name, given]) => [name, properties[given]]).filter(([, value]) => value !== undefined),
  ) as Record<string, unknown>,
  headers: properties['headers'] ?? {},
  payload: event,
});

type Part = 'payload' | 'headers' | 'x-amqp-properties';

export function asyncApiOf(document: AsyncApiDocument) {
  const ajv = newAjv();
  ajv.addSchema(document, 'asyncapi');

  /** AsyncAPI's own schemas extend draft 7, so everything is checked by that. */
  function faultsOfPart(kind: string, part: Part, value: unknown): string[] {
    const uri = `asyncapi#/components/messages/${kind}/${part}`;
    const validate = ajv.getSchema(uri) ?? ajv.compile({ $ref: uri });
    return validate(value) === true ? [] : inWords(validate.errors).map((fault) => `${kind} ${part}${fault}`);
  }

  /** The kinds whose payload it is. AsyncAPI wants exactly one. */
  const kindsOf = (channel: Channel, payload: unknown) =>
    Object.keys(channel.messages).filter((kind) => faultsOfPart(kind, 'payload', payload).length === 0);

  /** How a message that came from a channel differs from what the document says of it. */
  function faultsOf(name: 'events' | 'replayToOneQueue', message: AmqpMessage): string[] {
    const channel = document.channels[name];
    const { properties, headers, payload } = message;
    const kinds = kindsOf(channel, payload);
    const [kind = ''] = kinds;
    const described = document.components.messages[kind];
    if (kinds.length !== 1 || described === undefined)
      return [`it is ${kinds.length} of the messages of ${name}`];
    const values = valuesIn(channel, message.routing_key);
    return [
      ...faultsOfPart(kind, 'headers', headers),
      ...faultsOfPart(kind, 'x-amqp-properties', properties),
      ...wrong({
        contentType: [properties['content_type'], described.contentType],
        messageType: [properties['type'], described.bindings.amqp.messageType],
        messageId: [properties['message_id'], payload['id']],
        timestamp: [properties['timestamp'], Math.floor(Date.parse(String(payload['recordedtime'])) / 1_000)],
        'address fits': [values !== undefined, true],
        ...(name === 'events' && {
          kind: [values?.['kind'], kind],
          source: [`/sources/${values?.['source']}`, payload['source']],
        }),
      }),
    ];
  }

  return { faultsOf, faultsOfPart };
}

/** The parameters in a routing key, each of them one word of it; undefined if the key is not of the channel's address. */
function valuesIn({ address, parameters }: Channel, key: string): Record<string, string> | undefined {
  const names = [...address.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
  const isOneName = address === `{${names[0]}}`;
  const pattern = address
    .replaceAll(/[.*+?^$()|[\]\\]/g, String.raw`\$&`)
    .replaceAll(/\{\w+\}/g, isOneName ? '(.+)' : '([^.]+)');
  const found = new RegExp(`^${pattern}$`).exec(key);
  if (found === null) return undefined;
  const values = Object.fromEntries(names.map((name, index) => [name, found[index + 1] ?? '']));
  const isKnown = names.every((name) => parameters[name]?.enum?.includes(values[name] ?? '') ?? true);
  return isKnown ? values : undefined;
}

const wrong = (pairs: Readonly<Record<string, readonly [unknown, unknown]>>): string[] =>
  Object.entries(pairs)
    .filter(([, [found, expected]]) => found !== expected)
    .map(([name, [found, expected]]) => `${name} is ${String(found)}, not ${String(expected)}`);
