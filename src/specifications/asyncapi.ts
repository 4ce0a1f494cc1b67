// The AsyncAPI document of what Tallyhook publishes. It describes Tallyhook, so its operations are `send`; a subscriber receives
// the same messages from the same channels. Whoever has only this document can subscribe rightly.

import { CLOUD_EVENT_TYPE, KINDS, routingKey } from '../event/index.ts';
import { version } from '../base/version.ts';
import { BINDING_VERSION, messagesAndForms } from './asyncapi-messages.ts';
import { ABOUT_COPIES, aboutEvents } from './asyncapi-words.ts';

export type Bus = {
  /** The topic exchange. */
  readonly exchange: string;
  /** The first word or words of each routing key. */
  readonly routingPrefix: string;
};

export type AsyncApiDocument = { readonly asyncapi: '3.1.0'; readonly [field: string]: unknown };

const refTo = (pointer: string) => ({ $ref: `#/${pointer}` });

/** Made anew at each call; the same for the same names. */
export function createAsyncApiDocument({ exchange, routingPrefix }: Bus): AsyncApiDocument {
  return {
    asyncapi: '3.1.0',
    info: {
      title: 'Tallyhook for subscribers',
      version,
      description: aboutEvents({ exchange, routingPrefix }),
      license: { name: 'MIT', url: 'https://spdx.org/licenses/MIT.html' },
      tags: [{ name: 'events' }, { name: 'replays' }],
    },
    defaultContentType: CLOUD_EVENT_TYPE,
    servers: {
      broker: server('amqp', '5672', 'RabbitMQ, without TLS: inside a private network.'),
      brokerOverTls: server('amqps', '5671', 'RabbitMQ, with TLS.'),
    },
    channels: {
      events: {
        address: routingKey(routingPrefix, '{kind}', '{source}'),
        title: 'All events',
        description: `The topic exchange \`${exchange}\`. The address is the routing key. Declare a queue of your own and bind it.`,
        messages: channelMessages,
        parameters: {
          kind: { description: 'The kind of event.', enum: [...KINDS] },
          source: {
            description:
              'The name of the source: 1 to 63 lowercase letters, digits, `_` and `-`, never a dot. Deliveries to `/webhooks` have the source `default`.',
            examples: ['default', 'team-a'],
          },
        },
        bindings: {
          amqp: {
            is: 'routingKey',
            exchange: { name: exchange, type: 'topic', durable: true, autoDelete: false },
            bindingVersion: BINDING_VERSION,
          },
        },
        tags: [{ name: 'events' }, { name: 'replays' }],
      },
      replayToOneQueue: {
        address: '{queue}',
        title: 'Copies for one queue',
        description:
          'The default exchange of the broker, whose routing key is the name of a queue. An operator can send the copies of a replay to one queue only. No other queue gets them, and the bindings of the queue do not count.',
        messages: channelMessages,
        parameters: { queue: { description: 'The name of the queue.', examples: ['billing'] } },
        bindings: {
          amqp: {
            is: 'routingKey',
            exchange: { name: '', type: 'default', durable: true, autoDelete: false },
            bindingVersion: BINDING_VERSION,
          },
        },
        tags: [{ name: 'replays' }],
      },
    },
    operations: {
      publishEvents: operation(
        'events',
        'Publishes each accepted event, and the copies of a replay that goes to the exchange.',
      ),
      publishCopiesToOneQueue: operation(
        'replayToOneQueue',
        'Publishes the copies of a replay that goes to one queue.',
        ABOUT_COPIES,
      ),
    },
    components: {
      ...messagesAndForms(),
      correlationIds: {
        job: {
          description: 'The id of the job: all events of one job have the same `source` and `subject`.',
          location: '$message.payload#/subject',
        },
      },
      securitySchemes: {
        account: {
          type: 'userPassword',
          description:
            'An account of the broker. It needs the permissions configure, write and read for its own queues and their dead-letter exchange, and read for the exchange of the events.',
        },
      },
    },
  };
}

const channelMessages = Object.fromEntries(KINDS.map((kind) => [kind, refTo(`components/messages/${kind}`)]));

const server = (protocol: 'amqp' | 'amqps', port: string, description: string) => ({
  host: '{host}:{port}',
  pathname: '/{vhost}',
  protocol,
  protocolVersion: '0.9.1',
  description,
  variables: {
    host: { description: 'The host of your broker.', default: 'localhost' },
    port: { default: port },
    vhost: {
      description: 'The virtual host, percent-encoded. `%2F` is the default one, `/`.',
      default: '%2F',
    },
  },
  security: [refTo('components/securitySchemes/account')],
});

/** Persistent, so that the messages in a durable queue survive a restart of the broker. */
const operation = (channel: string, summary: string, description?: string) => ({
  action: 'send',
  channel: refTo(`channels/${channel}`),
  summary,
  ...(description === undefined ? {} : { description }),
  messages: KINDS.map((kind) => refTo(`channels/${channel}/messages/${kind}`)),
  bindings: {
    amqp: { deliveryMode: 2, timestamp: true, ack: true, bindingVersion: BINDING_VERSION },
  },
});
