// The bindings of the exchange and the queues of its virtual host, as RabbitMQ's management API answers them; bounded, and kept for
// some seconds for all who ask. Fields that a RabbitMQ leaves out are null: it counts a new queue's messages only after seconds.

import { z } from 'zod';
import type { AskManagement } from '../../base/amqp/management-api.ts';
import { cached } from '../../base/collections/cached.ts';
import { QUEUES_MAX } from './contract.ts';

/** Above the 5 s in which RabbitMQ counts anew there is nothing to gain, and a page that refreshes asks at each turn. */
const MAX_AGE_MS = 5_000;

const number = z.number().nullable().catch(null);
const text = z.string().nullable().catch(null);

/** An empty one is written as a list. */
const settings = z.record(z.string(), z.unknown()).catch({});

const Queue = z.object({
  name: z.string(),
  type: text.default(null),
  policy: text.default(null),
  messages: number.default(null),
  messages_ready: number.default(null),
  message_bytes_ready: number.default(null),
  consumers: number.default(null),
  arguments: settings,
  effective_policy_definition: settings,
});
const COLUMNS = Object.keys(Queue.shape).join(',');

const Binding = z.object({
  destination: z.string(),
  destination_type: z.enum(['queue', 'exchange']),
  routing_key: z.string(),
});

const QueuePage = z.object({ items: z.array(Queue), filtered_count: z.number() });

export type Queue = z.infer<typeof Queue>;
export type Binding = z.infer<typeof Binding>;

export type BrokerAnswer =
  | {
      readonly bindings: readonly Binding[];
      readonly queues: readonly Queue[];
      readonly hasMore: boolean;
      readonly at: string;
    }
  | { readonly because: string };

/** Never rejects. Asks at most once in some seconds, for all. */
export function createBrokerAnswers(options: {
  ask: AskManagement;
  virtualHost: string;
  exchange: string;
  /** Monotonic. */
  now: () => number;
}): () => Promise<BrokerAnswer> {
  const { ask, now } = options;
  const [host, exchange] = [options.virtualHost, options.exchange].map(encodeURIComponent);
  const paths = {
    bindings: `exchanges/${host}/${exchange}/bindings/source`,
    queues: `queues/${host}?page=1&page_size=${QUEUES_MAX}&pagination=true&sort=name&columns=${COLUMNS}`,
  };

  async function read(): Promise<BrokerAnswer> {
    const [bound, page] = await Promise.all([ask(paths.bindings), ask(paths.queues)]);
    if ('because' in bound) return bound;
    if ('because' in page) return page;
    const bindings = z.array(Binding).safeParse(bound.json);
    const queues = QueuePage.safeParse(page.json);
    if (!bindings.success || !queues.success) return { because: 'answered in another form than is known' };
    const { items, filtered_count: all } = queues.data;
    return {
      bindings: bindings.data,
      queues: items,
      hasMore: all > items.length,
      at: new Date().toISOString(),
    };
  }

  return cached({ maxAgeMs: MAX_AGE_MS, ask: read, now });
}
