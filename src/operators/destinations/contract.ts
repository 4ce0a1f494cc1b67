// Destinations: which queues are bound to the exchange, as RabbitMQ's management API has it, and the words for it.

import { z } from 'zod';
import { kind, timestamp } from '../kernel/list/fields.contract.ts';

/** One virtual host is looked at, which is best Tallyhook's own. So many are one answer of at most 2 MiB. */
export const QUEUES_MAX = 500;
export const DESTINATIONS_MAX = 500;
export const BINDING_KEYS_MAX = 100;
export const WARNED_SOURCES_MAX = 20;

const count = z.int().min(0);
const queueName = z.string().describe('The name of the queue.');

const Received = z
  .object({
    kind,
    sources: z.array(z.string()).nullable().describe('Null: of all sources, also of those to come.'),
  })
  .meta({ id: 'Received', description: 'Events that are routed there.' });

export const Destination = z
  .object({
    name: z.string(),
    what: z.enum(['queue', 'exchange']).describe('An exchange that is bound to ours routes on by its rules.'),
    receives: z.array(Received).describe('By the binding keys. Empty where no event has such a routing key.'),
    binding_keys: z.array(z.string()).describe(`At most ${BINDING_KEYS_MAX}.`),
    type: z.string().nullable().describe('`classic`, `quorum` or `stream`.'),
    policy: z.string().nullable().describe('The name of the policy that applies to it.'),
    messages: count.nullable().describe('Ready and unacknowledged. RabbitMQ counts them every few seconds.'),
    max_length: count.nullable().describe('By its arguments and its policy; null without a limit.'),
    overflow: z
      .string()
      .nullable()
      .describe(
        'What happens when it is full: `reject-publish` refuses events, `drop-head` deletes the oldest message. Null without a limit.',
      ),
    consumers: count.nullable(),
  })
  .meta({
    id: 'Destination',
    description: 'What is bound to the exchange. Null is what RabbitMQ does not know, or not yet.',
  });

export const DestinationWarning = z
  .object({
    warning: z.enum(['full', 'no_consumers', 'no_queue']),
    queue: queueName.nullable().describe('Null for `no_queue`.'),
    kind: kind.nullable().describe('Of `no_queue`.'),
    sources: z
      .array(z.string())
      .nullable()
      .describe(`Of \`no_queue\`: at most ${WARNED_SOURCES_MAX}; null for all configured ones.`),
    message: z.string().describe('For people.'),
  })
  .meta({ id: 'DestinationWarning', description: 'What keeps events from being received.' });

export const DestinationList = z
  .object({
    state: z.enum(['answered', 'not_configured', 'no_answer']),
    because: z.string().nullable().describe('Why nothing is known. Null if RabbitMQ has answered.'),
    at: timestamp.nullable().describe('When RabbitMQ answered. It is asked again after some seconds.'),
    exchange: z.string(),
    virtual_host: z.string(),
    warnings: z.array(DestinationWarning),
    items: z.array(Destination).describe(`By name, at most ${DESTINATIONS_MAX}.`),
    queues: z
      .array(z.string())
      .describe(
        `The names of all queues of the virtual host that a replay may be for, also of those that are not bound; at most ${QUEUES_MAX}.`,
      ),
    has_more: z
      .boolean()
      .describe('There are more queues or bindings than are looked at: what is left out may be of those.'),
  })
  .meta({ id: 'DestinationList', description: 'Where events go.' });

export type Destination = z.infer<typeof Destination>;
export type DestinationWarning = z.infer<typeof DestinationWarning>;
export type DestinationList = z.infer<typeof DestinationList>;

type Receiving = {
  readonly receives: readonly { readonly kind: string; readonly sources: readonly string[] | null }[];
};

/** `completed, failed of all sources; progress of team-a` */
export function receivedText({ receives }: Receiving): string {
  const bySources = new Map<string, string[]>();
  for (const { kind: received, sources } of receives) {
    const of = sources === null ? 'all sources' : sources.join(', ');
    bySources.set(of, [...(bySources.get(of) ?? []), received]);
  }
  return [...bySources].map(([of, kinds]) => `${kinds.join(', ')} of ${of}`).join('; ') || 'nothing';
}

/** `12 of 100` where it has a limit. */
export function depthText({
  messages,
  max_length: limit,
}: Pick<Destination, 'messages' | 'max_length'>): string | undefined {
  if (messages === null) return undefined;
  const shown = messages.toLocaleString('en-US');
  return limit === null ? shown : `${shown} of ${limit.toLocaleString('en-US')}`;
}

export const MORE_QUEUES = `There are more than ${QUEUES_MAX} queues, or more bindings than are shown: the rest is not looked at.`;
export const NOTHING_BOUND = 'nothing is bound to the exchange: every event is returned';
