// Makes sure that the broker has carried out all acknowledgements before a channel is closed. RabbitMQ gives no answer to an
// acknowledgement. For a quorum queue a channel holds them back while 32 are on their way, and drops the rest when it is closed:
// of 200 that were sent just before, 166 were without effect, and their messages came again (RabbitMQ 3.10).

import type { Channel } from 'amqplib';

/**
 * Resolves when all acknowledgements of this channel are carried out. To add a consumer is a command in the same log as they are,
 * and it is answered; what the channel held back follows, and the end of that consumer after it. With a single active consumer it
 * gets no message. On other queues it gets one at most, which is returned when the channel is closed.
 */
export async function flushAcknowledgements(channel: Channel, queue: string): Promise<void> {
  await channel.prefetch(1);
  const { consumerTag } = await channel.consume(queue, () => {});
  await channel.cancel(consumerTag);
}
