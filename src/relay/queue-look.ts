// Whether the broker has a queue: asked by a passive declare, which needs no right and changes nothing. For people who wait for the
// answer: what the broker does not say soon is not known.

import { setTimeout as sleep } from 'node:timers/promises';
import type { ChannelModel } from 'amqplib';
import { codeOf, onOwnChannel, saidIn } from './own-channel.ts';

/** Undefined: the broker cannot be asked now, or does not say. Never rejects. */
export type QueueLook = (queue: string) => Promise<boolean | undefined>;

/** A broker answers within milliseconds. */
const LOOK_TIMEOUT_MS = 1_000;
/** Each one that is not answered keeps a channel open. While so many are not, nobody waits for another. */
const LOOKS_MAX = 4;

const NOT_FOUND = 404;
/** Of a queue that is there, and is another connection's alone. */
const RESOURCE_LOCKED = 405;

/** For one connection: what is asked on it is answered at its end. */
export function createQueueLook(model: ChannelModel): QueueLook {
  let looking = 0;

  async function look(queue: string): Promise<boolean | undefined> {
    looking += 1;
    try {
      await onOwnChannel(model, (channel) => channel.checkQueue(queue));
      return true;
    } catch (error) {
      return toldBy(error);
    } finally {
      looking -= 1;
    }
  }

  return async (queue) => {
    if (looking >= LOOKS_MAX) return undefined;
    return Promise.race([look(queue), sleep(LOOK_TIMEOUT_MS, undefined, { ref: false })]);
  };
}

/** A 404 may also say that the node of a queue is down. */
function toldBy(error: unknown): boolean | undefined {
  if (codeOf(error) === RESOURCE_LOCKED) return true;
  return codeOf(error) === NOT_FOUND && saidIn(error).startsWith('no queue ') ? false : undefined;
}
