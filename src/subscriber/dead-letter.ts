// A message on its way to the dead-letter queue, with the error along. RabbitMQ adds no headers when it dead-letters what is rejected, so
// the subscriber publishes the message to the dead-letter exchange itself, and acknowledges it only when the broker has
// confirmed that it is in a queue there. If the process dies between the two, a copy is in both queues, and nothing is lost.

import type { ChannelModel, ConsumeMessage, XDeath } from 'amqplib';
import { describeError } from '../base/errors.ts';
import { orAfter } from './or-after.ts';

/** Why a message is dead-lettered. */
export type Failure = {
  /** `attempts`: all failed. `rejected`: by a `RejectError`. `invalid`: the message is no event. */
  readonly reason: 'attempts' | 'rejected' | 'invalid';
  /** How often the handler was called. */
  readonly attempts: number;
  readonly error: unknown;
};

/** What a dead letter says of its failure: `failure_reason` and so on among its headers. */
export type ToldFailure = {
  readonly reason: Failure['reason'];
  readonly attempts: number;
  /** The error's `name`. */
  readonly name: string;
  /** Its `code`, if it has one. */
  readonly code: string | undefined;
  /** Its `message`, at most 1 KiB. */
  readonly message: string;
};

/** Enough for a sentence or two. The headers of a message have to fit into one frame, of 128 KiB by default. */
const MESSAGE_MAX_BYTES = 1024;
const NAME_MAX_BYTES = 128;
/** A dead-letter queue that cannot confirm now. Not above the time for which a stop waits for what it has aborted. */
const CONFIRM_LIMIT_MS = 5_000;

/**
 * Publishes it to this exchange, on a channel of its own: the broker closes the channel of what it refuses.
 * @returns whether a queue has it for sure. If not, a copy may be in one all the same
 */
export async function publishDeadLetter(
  model: ChannelModel,
  exchange: string,
  { message, queue, failure }: { message: ConsumeMessage; queue: string; failure: Failure },
): Promise<boolean> {
  let isInQueue = false;
  const published = publish().then(
    (isSure) => (isInQueue = isSure),
    () => {},
  );
  await orAfter(published, CONFIRM_LIMIT_MS);
  return isInQueue;

  async function publish(): Promise<boolean> {
    const channel = await model.createConfirmChannel();
    let isRouted = true;
    channel.on('error', () => {}); // the confirm fails, too
    channel.on('return', () => (isRouted = false)); // comes before the confirm
    const { fields, content } = message;
    // As when RabbitMQ dead-letters: the message must not expire there, too.
    const { expiration: _, headers, ...properties } = message.properties;
    channel.publish(exchange, fields.routingKey, content, {
      ...properties,
      headers: { ...headers, ...deathHeaders(message, queue), ...failureHeaders(failure) },
      persistent: true,
      mandatory: true,
    });
    await channel.waitForConfirms();
    void channel.close().catch(() => {});
    return isRouted;
  }
}

/** Nothing of the error but what may be logged: no stack, no cause, no fields. */
function failureHeaders({ reason, attempts, error }: Failure): Record<string, unknown> {
  const { name, code, message } = describeError(error);
  return {
    failure_reason: reason,
    failure_attempts: attempts,
    failure_name: cut(name, NAME_MAX_BYTES),
    failure_code: code === undefined ? undefined : cut(code, NAME_MAX_BYTES),
    failure_message: cut(message.replaceAll(CREDENTIALS, '//…@'), MESSAGE_MAX_BYTES),
  };
}

/** Libraries quote the URL that they could not reach, some of them with its password. */
const CREDENTIALS = /\/\/[^\s/@]+@/g;

/** Whole characters only. */
const cut = (text: string, maxBytes: number): string =>
  new TextDecoder().decode(Buffer.from(text).subarray(0, maxBytes), { stream: true });

/** @returns undefined unless a subscriber has dead-lettered it */
export function failureIn(headers: Record<string, unknown> = {}): ToldFailure | undefined {
  const { failure_reason: reason, failure_attempts: attempts, failure_code: code } = headers;
  if (typeof reason !== 'string' || typeof attempts !== 'number') return undefined;
  const { failure_name: name, failure_message: message } = headers;
  return {
    reason: reason as Failure['reason'],
    attempts,
    name: String(name),
    code: typeof code === 'string' ? code : undefined,
    message: String(message),
  };
}

/** What RabbitMQ would have added: a message that dies here again adds to the count of its first death. */
function deathHeaders({ fields, properties }: ConsumeMessage, queue: string): Record<string, unknown> {
  const { headers = {} } = properties;
  const { 'x-death': found } = headers;
  const earlier = Array.isArray(found) ? (found as Partial<XDeath>[]) : [];
  const isSame = (death: Partial<XDeath>) => death.queue === queue && death.reason === 'rejected';
  const same = earlier.find(isSame);
  const death = {
    'routing-keys': [fields.routingKey],
    exchange: fields.exchange,
    time: { '!': 'timestamp', value: Math.floor(Date.now() / 1_000) },
    ...same,
    count: (same?.count ?? 0) + 1,
    queue,
    reason: 'rejected',
  };
  return {
    'x-first-death-exchange': fields.exchange,
    'x-first-death-queue': queue,
    'x-first-death-reason': 'rejected',
    ...Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith('x-first-death-'))),
    'x-death': [death, ...earlier.filter((each) => !isSame(each))],
  };
}
