// amqplib writes each message to the socket by itself, which costs a system call and a packet for each. Here all that is
// published in one turn of the event loop goes out in one write. Nothing waits for a timer.

import { Writable } from 'node:stream';
import type { ChannelModel } from 'amqplib';

/** Returns what has to be called after each publish: the socket then holds its writes until amqplib has made all of this turn. */
export function corkWrites(model: ChannelModel): () => void {
  const socket = socketOf(model);
  if (socket === undefined) return () => {};
  let isCorked = false;

  function uncork(): void {
    isCorked = false;
    socket?.uncork();
  }

  function cork(): void {
    if (isCorked) return;
    isCorked = true;
    socket?.cork();
    // amqplib learns of the message at the next tick, and writes it at the next immediate. Ours is behind it.
    process.nextTick(() => setImmediate(uncork));
  }

  // amqplib stops when the socket holds enough, and continues at this event: hold these writes, too.
  socket.prependListener('drain', cork);
  return cork;
}

/** amqplib's types do not name the socket. Without it each message is a write of its own, and nothing else changes. */
function socketOf({ connection }: ChannelModel): Writable | undefined {
  const stream: unknown = Reflect.get(connection, 'stream');
  return stream instanceof Writable ? stream : undefined;
}
