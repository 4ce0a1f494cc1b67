// How many requests of one connection are taken at a time, and when each begins. Node starts every request that one read of
// a socket holds, up to 1,800, before the loop turns: whoever pipelines would stop the whole process.

import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/** Senders that pipeline at all have a handful under way; what each costs until its answer is some kilobytes. */
export const MAX_UNDER_WAY = 16;

/** A refusal takes some 60 µs: these keep the loop for a millisecond. It takes one new connection in each turn, not more. */
const BEGUN_A_TURN = 16;

type Parser = { onIncoming?: (request: IncomingMessage, shouldKeepAlive: boolean) => number };

/**
 * Has the parser stop at the head of a request that `isTaken` refuses, and fail there as it would for something that is not
 * HTTP: the server gets a `clientError`. The rest of what was read is never looked at, which is what makes it cheap.
 *
 * `parser.onIncoming` is Node's own and not documented. Where it is missing, requests arrive all the same, and it is left
 * to their listener not to take them.
 */
export function stopParsingUnless(socket: Socket, isTaken: () => boolean): void {
  const parser = (socket as Socket & { parser?: Parser | null }).parser;
  const onIncoming = parser?.onIncoming;
  if (!parser || typeof onIncoming !== 'function') return;
  parser.onIncoming = (request, shouldKeepAlive) => (isTaken() ? onIncoming(request, shouldKeepAlive) : FAIL);
}

/** What makes llhttp end with an error of its callback. 0 to 2 and 21 mean other things. */
const FAIL = -1;

/** Runs what it is given later, in order, a bounded number in each turn of the event loop. */
export function createTurns(): (begin: () => void) => void {
  const waiting: (() => void)[] = [];
  let isTurnDue = false;

  function turn(): void {
    isTurnDue = false;
    for (const begin of waiting.splice(0, BEGUN_A_TURN)) begin();
    if (waiting.length > 0) plan();
  }

  function plan(): void {
    if (isTurnDue) return;
    isTurnDue = true;
    setImmediate(turn);
  }

  return (begin) => {
    waiting.push(begin);
    plan();
  };
}
