// What the broker must have before we publish. It is declared on each new channel, so that a deleted exchange exists again with
// the next connection.

import type { Channel } from 'amqplib';

export type Topology = {
  readonly exchange: { readonly name: string; readonly type: 'topic'; readonly durable: true };
};

/** Only the exchange: subscribers declare queues and bindings. */
export function topologyOf(options: { exchange: string }): Topology {
  return { exchange: { name: options.exchange, type: 'topic', durable: true } };
}

/** Idempotent. Rejects, and the broker closes the channel, if an exchange of that name has other properties. */
export async function declareTopology(channel: Channel, topology: Topology): Promise<void> {
  const { name, type, durable } = topology.exchange;
  await channel.assertExchange(name, type, { durable });
}
