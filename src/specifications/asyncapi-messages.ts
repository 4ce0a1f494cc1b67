// The messages of the AsyncAPI document, one for each kind of event, and the forms that they refer to. Their payload is the whole
// CloudEvent: the envelope, and the data of the kind.

import {
  CLOUD_EVENT_TYPE,
  dataForm,
  dataSchema,
  envelopeForm,
  eventType,
  type Kind,
  KINDS,
} from '../event/index.ts';
import { examplesOf } from './asyncapi-examples.ts';
import { embedded } from './embedded.ts';

const NAMES = {
  completed: { data: 'CompletedData', title: 'A job was completed' },
  failed: { data: 'FailedData', title: 'A job failed' },
  progress: { data: 'ProgressData', title: 'A job made progress' },
} as const satisfies Record<Kind, unknown>;

/** The AMQP binding of AsyncAPI. */
export const BINDING_VERSION = '0.3.0';

const HEADERS = {
  type: 'object',
  description:
    'The AMQP headers. First copies have none of these two, copies of a replay have both. The broker can add its own, such as `x-delivery-count` and `x-death`.',
  properties: {
    replay: {
      type: 'string',
      format: 'uuid',
      description: 'The id of the replay, the same on all its copies.',
    },
    replayed_by: { type: 'string', description: 'The name of the token that started the replay.' },
  },
  // Of draft 7, which AsyncAPI's own schemas extend.
  dependencies: { replay: ['replayed_by'], replayed_by: ['replay'] },
};

/** For `components`. */
export const messagesAndForms = (): { readonly messages: object; readonly schemas: object } => ({
  messages: Object.fromEntries(KINDS.map((kind) => [kind, messageOf(kind)])),
  schemas: {
    Envelope: embedded(envelopeForm()),
    ...Object.fromEntries(KINDS.map((kind) => [NAMES[kind].data, embedded(dataForm(kind))])),
    Headers: HEADERS,
  },
});

function messageOf(kind: Kind): object {
  const { data, title } = NAMES[kind];
  return {
    name: eventType(kind),
    title,
    contentType: CLOUD_EVENT_TYPE,
    headers: { $ref: '#/components/schemas/Headers' },
    payload: {
      title: `The CloudEvent of the type ${eventType(kind)}`,
      allOf: [
        { $ref: '#/components/schemas/Envelope' },
        {
          type: 'object',
          properties: {
            type: { const: eventType(kind) },
            dataschema: { const: dataSchema(kind) },
            data: { $ref: `#/components/schemas/${data}` },
          },
        },
      ],
    },
    correlationId: { $ref: '#/components/correlationIds/job' },
    bindings: { amqp: { messageType: eventType(kind), bindingVersion: BINDING_VERSION } },
    examples: examplesOf(kind),
    'x-amqp-properties': propertiesOf(kind),
  };
}

/** What the broker delivers beside headers and body, by the names of AMQP 0-9-1. The binding has no place for most of it. */
const propertiesOf = (kind: Kind): object => ({
  type: 'object',
  required: ['message_id', 'content_type', 'type', 'delivery_mode', 'timestamp', 'app_id'],
  properties: {
    message_id: { type: 'string', minLength: 1, description: 'The `id` of the event.' },
    content_type: { const: CLOUD_EVENT_TYPE },
    type: { const: eventType(kind), description: 'The `type` of the event.' },
    delivery_mode: { const: 2, description: 'Persistent.' },
    timestamp: {
      type: 'integer',
      minimum: 0,
      description: 'The `recordedtime` of the event, in whole seconds since 1970.',
    },
    app_id: { const: 'tallyhook' },
  },
});
