// The socket of one connection of amqplib, for what amqplib does not offer: one write for all messages of a turn, and an end to
// a connection whose broker does not answer. amqplib writes each message by itself: a system call and a packet for each.

import { Writable } from 'node:stream';
import type { ChannelModel } from 'amqplib';

export type BrokerSocket = {
  /** Call it after each publish. The socket holds its writes until amqplib has made all of this turn of the event loop. */
  readonly cork: () => void;
  /** Ends the connection if it is still open. amqplib then reports a loss with this reason. */
  readonly destroy: (reason: string) => void;
};

export function brokerSocket(model: ChannelModel): BrokerSocket {
  const socket = socketOf(model);
  // Then each message is a write of its own, and a connection that does not end stays until its heartbeats fail.
  if (socket === undefined) return { cork: () => {}, destroy: () => {} };
  return {
    cork: corkPerTurn(socket),
    destroy: (reason) => {
      socket.destroy(new Error(reason));
    },
  };
}

function corkPerTurn(socket: Writable): () => void {
  let isCorked = false;

  function uncork(): void {
    isCorked = false;
    socket.uncork();
  }

  function cork(): void {
    if (isCorked) return;
    isCorked = true;
    socket.cork();
    // amqplib learns of the message at the next tick, and writes it at the next immediate. Ours is behind it.
    process.nextTick(() => setImmediate(uncork));
  }

  // amqplib stops when the socket holds enough, and continues at this event: hold these writes, too.
  socket.prependListener('drain', cork);
  return cork;
}

/** amqplib's types do not name it. */
function socketOf({ connection }: ChannelModel): Writable | undefined {
  const stream: unknown = Reflect.get(connection, 'stream');
  return stream instanceof Writable ? stream : undefined;
}
