// What RabbitMQ's answers mean: which queue gets which events, and what keeps events from being received. Pure.

import { KINDS, type Kind } from '../../event/index.ts';
import { type Received, receivedBy, together } from './binding-keys.operations.ts';
import type { Binding, Queue } from './broker-answers.operations.ts';
import {
  BINDING_KEYS_MAX,
  type Destination,
  DESTINATIONS_MAX,
  type DestinationWarning,
  WARNED_SOURCES_MAX,
} from './contract.ts';

type Judged = {
  readonly items: Destination[];
  readonly warnings: DestinationWarning[];
  /** There are more than these. */
  readonly hasMore: boolean;
};

/** @param sources the configured ones */
export function judge(
  { bindings, queues }: { readonly bindings: readonly Binding[]; readonly queues: readonly Queue[] },
  { routingPrefix, sources }: { routingPrefix: string; sources: readonly string[] },
): Judged {
  const known = new Map(queues.map((queue) => [queue.name, queue]));
  const bound = [...byDestination(bindings).values()].toSorted((a, b) => compare(a.name, b.name));
  const destinations = bound.map(({ name, what, keys }) => {
    const queue = what === 'queue' ? known.get(name) : undefined;
    const receives = together(keys.flatMap((key) => receivedBy(key, routingPrefix)));
    return { item: toDestination({ name, what, keys, receives, queue }), queue, receives };
  });
  const shown = destinations.slice(0, DESTINATIONS_MAX);
  return {
    items: shown.map(({ item }) => item),
    warnings: [
      ...kindWarnings(together(destinations.flatMap(({ receives }) => receives)), sources),
      ...shown.flatMap(({ queue }) => (queue === undefined ? [] : queueWarnings(queue))),
    ],
    hasMore: destinations.length > shown.length,
  };
}

type Bound = { readonly name: string; readonly what: 'queue' | 'exchange'; readonly keys: string[] };

/** A queue and an exchange may have one name. */
function byDestination(bindings: readonly Binding[]): Map<string, Bound> {
  const found = new Map<string, Bound>();
  for (const { destination: name, destination_type: what, routing_key: key } of bindings) {
    const of = `${what} ${name}`;
    const bound = found.get(of) ?? { name, what, keys: [] };
    bound.keys.push(key);
    found.set(of, bound);
  }
  return found;
}

const compare = (a: string, b: string) => (a < b ? -1 : Number(a > b));

function toDestination({
  name,
  what,
  keys,
  receives,
  queue,
}: Bound & { receives: readonly Received[]; queue: Queue | undefined }): Destination {
  const { maxLength = null, overflow = null } = queue === undefined ? {} : limitsOf(queue);
  return {
    name,
    what,
    receives: receives.map(({ kind, sources }) => ({
      kind,
      sources: sources === null ? null : [...sources],
    })),
    binding_keys: keys.toSorted(compare).slice(0, BINDING_KEYS_MAX),
    type: queue?.type ?? null,
    policy: queue?.policy ?? null,
    messages: queue?.messages ?? null,
    max_length: maxLength,
    overflow,
    consumers: queue?.consumers ?? null,
  };
}

/** Of two limits the smaller one holds; what happens at it, the queue's own arguments say first. */
function limitsOf({ arguments: own, effective_policy_definition: policy }: Queue) {
  const smaller = (name: string) => {
    const given = [own[`x-${name}`], policy[name]].filter((limit) => typeof limit === 'number');
    return given.length === 0 ? undefined : Math.min(...given);
  };
  const [maxLength, maxBytes] = [smaller('max-length'), smaller('max-length-bytes')];
  const isLimited = maxLength !== undefined || maxBytes !== undefined;
  const overflow = own['x-overflow'] ?? policy['overflow'] ?? (isLimited ? 'drop-head' : undefined);
  return { maxLength, maxBytes, overflow: typeof overflow === 'string' ? overflow : undefined };
}

function queueWarnings(queue: Queue): DestinationWarning[] {
  const { name, consumers, messages } = queue;
  const waiting = messages === null || messages === 0 ? '' : `, and ${waitingText(messages)} in it`;
  const warn = (warning: 'full' | 'no_consumers', message: string): DestinationWarning => ({
    warning,
    queue: name,
    kind: null,
    sources: null,
    message,
  });
  return [
    ...(isRejecting(queue)
      ? [warn('full', `queue ${name} is full and refuses events (overflow=${limitsOf(queue).overflow})`)]
      : []),
    ...(consumers === 0 ? [warn('no_consumers', `nobody consumes queue ${name}${waiting}`)] : []),
  ];
}

const waitingText = (messages: number) =>
  messages === 1 ? '1 message waits' : `${messages.toLocaleString('en-US')} messages wait`;

const reaches = (ready: number | null, limit: number | undefined) =>
  ready !== null && limit !== undefined && ready >= limit;

/** The limits count what is ready. `reject-publish-dlx` refuses, too. */
function isRejecting(queue: Queue): boolean {
  const { maxLength, maxBytes, overflow } = limitsOf(queue);
  if (overflow?.startsWith('reject-publish') !== true) return false;
  return reaches(queue.messages_ready, maxLength) || reaches(queue.message_bytes_ready, maxBytes);
}

/** What no queue gets: of all configured sources, or of some. */
function kindWarnings(received: readonly Received[], sources: readonly string[]): DestinationWarning[] {
  return KINDS.flatMap((kind): DestinationWarning[] => {
    const own = received.find((one) => one.kind === kind);
    if (own !== undefined && own.sources === null) return [];
    const taken = new Set(own?.sources);
    const missing = sources.filter((source) => !taken.has(source));
    if (own === undefined || (missing.length === sources.length && missing.length > 0))
      return [noQueue(kind, null)];
    return missing.length === 0 ? [] : [noQueue(kind, missing)];
  });
}

function noQueue(kind: Kind, missing: readonly string[] | null): DestinationWarning {
  const shown = missing?.slice(0, WARNED_SOURCES_MAX) ?? null;
  const more = (missing?.length ?? 0) - (shown?.length ?? 0);
  const of = shown === null ? '' : ` of ${shown.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
  return {
    warning: 'no_queue',
    queue: null,
    kind,
    sources: shown,
    message: `no queue is bound for ${kind} events${of}: they are returned`,
  };
}
