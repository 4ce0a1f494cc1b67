// What a subscriber needs at the broker: its queue, the queue for dead letters, bindings. Declared on each connection, so that
// what was deleted exists again. The exchange belongs to Tallyhook: a subscriber's account needs no right to configure it.

import type { Channel, ChannelModel } from 'amqplib';
import { SubscriberError } from './errors.ts';
import type { Topology } from './settings.ts';

export type Declared = {
  /** The queue did not exist before. */
  readonly wasMissing: boolean;
  /** The queue has the form and the dead-letter exchange that this subscriber gives it. Else its owner decided. */
  readonly isOwnForm: boolean;
};

/**
 * How often the broker delivers a message before it dead-letters it: RabbitMQ 4's own default. Each connection that ends adds one
 * to the count of what it had not acknowledged, also of healthy events, so it is not small.
 */
const DELIVERY_LIMIT = 20;
/** RabbitMQ 4 would drop a dead letter that was looked at 20 times and put back. As good as none, which 3.10 cannot say. */
const DEAD_DELIVERY_LIMIT = 1_000_000;

/**
 * A queue for as long as the subscriber runs. It survives a restart of the broker, and goes by itself when the subscriber died.
 * Without a consumer it has room for five minutes of 300 events a second; beyond that the broker drops the oldest. (Refusing new
 * ones instead would hold up the relay.)
 */
const TEMPORARY = {
  'x-expires': 5 * 60_000,
  'x-max-length': 100_000,
  'x-max-length-bytes': 128 * 1024 * 1024,
};

const ACCESS_REFUSED = 403;
const NOT_FOUND = 404;
const PRECONDITION_FAILED = 406;

/** The exchange and the queue for dead letters have this name. */
export const deadName = (queue: string): string => `${queue}.dead`;

/**
 * Idempotent. @throws SubscriberError
 * @param isBound this subscriber made the queue: it is declared and bound again although it exists
 */
export async function declareTopology(
  model: ChannelModel,
  topology: Topology,
  isBound: boolean,
): Promise<Declared> {
  const { queue, form } = topology;
  const found = await findQueue(model, queue);
  if (form === 'never' && found === undefined)
    throw new SubscriberError(
      'queue_missing',
      `queue '${queue}' does not exist, and this subscriber declares none`,
    );
  const isForeign = form === 'never' || (form === 'missing' && found !== undefined && !isBound);
  if (!isForeign) {
    await declareExchange(model, topology);
    await tried(topology, () => onChannel(model, (channel) => declareQueue(channel, topology)));
  }
  return {
    wasMissing: found === undefined,
    isOwnForm: !isForeign && form !== 'temporary',
  };
}

async function declareExchange(model: ChannelModel, topology: Topology): Promise<void> {
  const { exchange, account } = topology;
  if (topology.declareExchange && (await isDeclared(model, topology))) return;
  try {
    await onChannel(model, (channel) => channel.checkExchange(exchange));
  } catch (error) {
    if (codeOf(error) !== NOT_FOUND) throw toSubscriberError(error, topology);
    throw new SubscriberError(
      'exchange_missing',
      `exchange '${exchange}' does not exist on virtual host '${account.virtualHost}': Tallyhook declares it when it starts`,
      { cause: error },
    );
  }
}

/** False if it may be there in a form that others chose, or if the account may not declare it: then it is used as it is. */
async function isDeclared(model: ChannelModel, topology: Topology): Promise<boolean> {
  try {
    await onChannel(model, (channel) =>
      channel.assertExchange(topology.exchange, 'topic', { durable: true }),
    );
    return true;
  } catch (error) {
    const isOfType = /inequivalent arg 'type'/.test(error instanceof Error ? error.message : '');
    const isUsable = codeOf(error) === PRECONDITION_FAILED && !isOfType;
    if (isUsable || codeOf(error) === ACCESS_REFUSED) return false;
    throw toSubscriberError(error, topology);
  }
}

/** Needs no right. undefined if there is none. With a single active consumer, those that wait are not counted. */
export async function findQueue(
  model: ChannelModel,
  queue: string,
): Promise<{ readonly consumers: number } | undefined> {
  try {
    const { consumerCount } = await onChannel(model, (channel) => channel.checkQueue(queue));
    return { consumers: consumerCount };
  } catch (error) {
    if (codeOf(error) === NOT_FOUND) return undefined;
    throw error;
  }
}

async function declareQueue(channel: Channel, topology: Topology): Promise<void> {
  const { queue, exchange, form, bindings } = topology;
  if (form === 'temporary') {
    await channel.assertQueue(queue, { durable: true, arguments: TEMPORARY });
  } else {
    // This one first: if it exists in another form, nothing has been made.
    await channel.assertQueue(queue, { durable: true, arguments: argumentsOf(topology) });
    const dead = deadName(queue);
    await channel.assertExchange(dead, 'fanout', { durable: true });
    await channel.assertQueue(dead, { durable: true, arguments: DEAD_ARGUMENTS });
    await channel.bindQueue(dead, dead, '');
  }
  for (const binding of bindings) await channel.bindQueue(queue, exchange, binding);
}

const DEAD_ARGUMENTS = { 'x-queue-type': 'quorum', 'x-delivery-limit': DEAD_DELIVERY_LIMIT };

/**
 * At-least-once dead-lettering asks for `reject-publish`. The queue has no maximum length, so nothing is rejected: a subscriber
 * that is away must not hold up the relay, and loses nothing.
 */
const argumentsOf = ({ queue, singleActiveConsumer }: Topology) => ({
  'x-queue-type': 'quorum',
  'x-delivery-limit': DELIVERY_LIMIT,
  'x-dead-letter-exchange': deadName(queue),
  'x-dead-letter-strategy': 'at-least-once',
  'x-overflow': 'reject-publish',
  ...(singleActiveConsumer ? { 'x-single-active-consumer': true } : {}),
});

/** On a channel of its own: the broker closes the channel of an operation that it refuses. */
async function onChannel<Result>(
  model: ChannelModel,
  work: (channel: Channel) => Promise<Result>,
): Promise<Result> {
  const channel = await model.createChannel();
  channel.on('error', () => {}); // the operation rejects, too
  const result = await work(channel);
  await channel.close();
  return result;
}

async function tried<Result>(topology: Topology, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw toSubscriberError(error, topology);
  }
}

/** An error of the broker in the words of whoever has to do something; others as they are. */
export function toSubscriberError(error: unknown, topology: Topology): unknown {
  const code = codeOf(error);
  const said = /"([A-Z_]+ - )?(.*)"/s.exec(error instanceof Error ? error.message : '')?.[2] ?? '';
  if (code === PRECONDITION_FAILED)
    return new SubscriberError(
      'queue_differs',
      `a queue or exchange of this name exists in another form (${said}). Choose another name, use the queue as it is (declare: 'never'), or delete it once it is empty`,
      { cause: error },
    );
  if (code === ACCESS_REFUSED)
    return new SubscriberError(
      'access_refused',
      `the broker refused this account something (${said}). ${cureOf(topology, said.startsWith('access to topic'))}`,
      { cause: error },
    );
  return error;
}

/** Whoever pastes a command for an account that also publishes would take that right from it. */
function cureOf(topology: Topology, isTopic: boolean): string {
  if (topology.form === 'temporary' && !isTopic) return OWN_QUEUE;
  const command = isTopic ? topicGrantOf(topology) : grantOf(topology);
  return `This command replaces the account's present rights, so give it to an account of this subscriber alone: ${command}`;
}

/** Rights are given by name, and a temporary queue has another name each time. */
const OWN_QUEUE =
  'A temporary queue has another name each time. Give this subscriber an account and a queue of its own: deploy/rights/rabbitmq.sh subscribe watch, and then the queue watch (tallyhook tail --queue watch)';

/** The command that gives an account what this subscriber needs, and no more. */
function grantOf({ queue, exchange, form, declareExchange: declares, account }: Topology): string {
  const [own, source] = [pattern(queue), pattern(exchange)];
  const queues = form === 'temporary' ? own : `${own}(\\.dead)?`;
  const [configure, write, read] =
    form === 'never'
      ? ['^$', '^$', `^${own}$`]
      : [declares ? `^(${queues}|${source})$` : `^${queues}$`, `^${queues}$`, `^(${queues}|${source})$`];
  return `rabbitmqctl set_permissions -p '${account.virtualHost}' '${account.user}' '${configure}' '${write}' '${read}'`;
}

/** The same for an account whose topic permissions leave out what it binds. */
function topicGrantOf({ exchange, bindings, account }: Topology): string {
  const keys = bindings.map(keysOf);
  const read = keys.length === 1 ? `^${keys[0]}$` : `^(${keys.join('|')})$`;
  return `rabbitmqctl set_topic_permissions -p '${account.virtualHost}' '${account.user}' '${exchange}' '^$' '${read}'`;
}

/** The routing keys of a binding. The broker also compares the binding itself: `*` and `#` have to fit, too. */
const keysOf = (binding: string) => pattern(binding).replaceAll('\\*', '[^.]+').replaceAll('#', '.*');

const pattern = (name: string) => name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

const codeOf = (error: unknown) => (error as { code?: unknown } | null)?.code;
