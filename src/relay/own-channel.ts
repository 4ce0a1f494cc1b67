// A question to the broker on a channel of its own: the broker closes the channel of an operation that it refuses.

import type { Channel, ChannelModel } from 'amqplib';

/** @throws what the broker answers to `work`: its reply code is `codeOf`, its words are `saidIn` */
export async function onOwnChannel(
  model: ChannelModel,
  work: (channel: Channel) => Promise<unknown>,
): Promise<void> {
  const channel = await model.createChannel();
  channel.on('error', () => {}); // the operation rejects, too
  await work(channel);
  await channel.close();
}

/** What the broker said, without its code and amqplib's frame around it. */
export const saidIn = (error: unknown) =>
  /"([A-Z_]+ - )?(.*)"$/s.exec(error instanceof Error ? error.message : '')?.[2] ?? '';

export const codeOf = (error: unknown) => (error as { code?: unknown } | null)?.code;
