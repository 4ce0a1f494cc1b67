// What the broker must have before we publish: one exchange. It is declared on each new connection, so that a deleted exchange
// exists again. One that others have made is used, if it is a topic exchange that takes messages.

import type { ChannelModel } from 'amqplib';
import { BrokerRefusalError } from '../base/errors.ts';
import { codeOf, onOwnChannel, saidIn } from './own-channel.ts';

export type Topology = {
  readonly exchange: { readonly name: string; readonly type: 'topic'; readonly durable: true };
};

/**
 * - `declared`: it is as we want it.
 * - `differs`: it exists with another argument than ours, as an alternate exchange, and is used; `detail` names it.
 * - `not ours`: it exists, and our account may not declare it. Its type is not known.
 */
export type Declared = {
  readonly exchange: 'declared' | 'differs' | 'not ours';
  readonly detail: string;
};

const ACCESS_REFUSED = 403;
const NOT_FOUND = 404;
const PRECONDITION_FAILED = 406;

/** Only the exchange: subscribers declare queues and bindings. */
export function topologyOf(options: { exchange: string }): Topology {
  return { exchange: { name: options.exchange, type: 'topic', durable: true } };
}

/**
 * Idempotent. Whether we may publish to the exchange is known only when we do.
 * @throws BrokerRefusalError if there is an exchange of that name that cannot be used, or none and we may not make it
 */
export async function declareTopology(model: ChannelModel, { exchange }: Topology): Promise<Declared> {
  const { name, type, durable } = exchange;
  try {
    await onOwnChannel(model, (channel) => channel.assertExchange(name, type, { durable }));
    return { exchange: 'declared', detail: '' };
  } catch (error) {
    if (codeOf(error) === PRECONDITION_FAILED) return { exchange: 'differs', detail: usable(error, name) };
    if (codeOf(error) === ACCESS_REFUSED) return findExchange(model, { name, refusal: error });
    throw error;
  }
}

/** A passive declare needs no right. */
async function findExchange(
  model: ChannelModel,
  { name, refusal }: { name: string; refusal: unknown },
): Promise<Declared> {
  try {
    await onOwnChannel(model, (channel) => channel.checkExchange(name));
    return { exchange: 'not ours', detail: saidIn(refusal) };
  } catch (error) {
    if (codeOf(error) !== NOT_FOUND) throw error;
    throw new BrokerRefusalError(
      'access_refused',
      `the exchange '${name}' does not exist, and our account may not declare it: declare it as a durable topic exchange, or allow the account to configure it (${saidIn(refusal)})`,
      { cause: refusal },
    );
  }
}

/**
 * The argument that differs.
 * @throws BrokerRefusalError if it is one that no message gets past
 */
function usable(error: unknown, name: string): string {
  const said = saidIn(error);
  const [, argument = '', current = ''] = /inequivalent arg '([^']*)'.*current is (.*)$/s.exec(said) ?? [];
  if (argument === 'type')
    throw new BrokerRefusalError(
      'broker_refused',
      `the exchange '${name}' is of type ${current} and has to be of type 'topic': delete it, or set AMQP_EXCHANGE to another name`,
      { cause: error },
    );
  if (argument === 'internal')
    throw new BrokerRefusalError(
      'broker_refused',
      `the exchange '${name}' is internal, so nobody can publish to it: delete it, or set AMQP_EXCHANGE to another name`,
      { cause: error },
    );
  return said;
}
