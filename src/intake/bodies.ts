// Reads the bodies of deliveries that nobody has verified yet, within limits: of size and time for each, and of memory for all
// that are read at once. A body that no signature can match is counted and dropped as it arrives. Memory is counted by what
// has arrived, never by what a request announces.
//
// raw-body reads them. An `aborted` of the request makes it let go: to destroy the request would destroy the socket, which has
// yet to carry the answer. A decoder takes the chunks: raw-body itself would keep each until the body is whole, and each costs
// 600 bytes beside its own (docs/decisions/2026-11-26-raw-body.md).

import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { getRawBody, type RawBodyError } from 'raw-body';
import { createLinkedList, type Linked } from '../base/collections/linked-list.ts';
import type { Deadlines } from './deadlines.ts';

export type Body =
  | { readonly kind: 'buffered'; readonly bytes: Buffer }
  /** It arrived whole, and nothing of it was kept. */
  | { readonly kind: 'counted'; readonly length: number }
  /**
   * Not all of it was read, unless `shed` with its last bytes. Otherwise its connection has to end with the answer; what still
   * comes is dropped. `shed`: the budget was used up.
   */
  | { readonly kind: 'too-large' | 'late' | 'incomplete' | 'shed' };

/** `deadlineMs`: on the clock of the deadlines. */
export type ReadOptions = { isBuffered: boolean; limitBytes: number; deadlineMs: number };

export type Bodies = {
  /** Reads a request's body, at most `limitBytes` and until `deadlineMs`. Never rejects. */
  readonly read: (request: IncomingMessage, options: ReadOptions) => Promise<Body>;
  /** Memory of all bodies that are being read now. */
  readonly bufferedBytes: () => number;
};

const NOTHING = Buffer.alloc(0);

/** Of the event loop. Each reads 64 KiB, so all of them read what Linux keeps for a socket: 6 MiB. */
const DRAIN_TURNS = 100;

/** A body as far as it has arrived. */
interface Reading extends Linked<Reading> {
  readonly request: IncomingMessage;
  readonly limitBytes: number;
  /** How much has arrived. */
  length: number;
  /** Begins with that, and may have room for more. Empty for a body that is only counted. */
  held: Buffer;
  givenUp: 'late' | 'shed' | undefined;
}

/**
 * Past the budget the oldest body is shed and not the newest: an honest body arrives within milliseconds, so the oldest one
 * stalls. Its memory is freed at once, but it is answered only when its time is over: answered at once, thousands of senders
 * would try again at once, and keep all others waiting.
 */
export function createBodies({
  budgetBytes,
  deadlines,
}: {
  budgetBytes: number;
  deadlines: Deadlines;
}): Bodies {
  const readings = createLinkedList<Reading>();
  let bufferedBytes = 0;

  function keep(reading: Reading, chunk: Buffer): void {
    bufferedBytes -= reading.held.length;
    reading.held = append(reading, chunk);
    bufferedBytes += reading.held.length;
    for (const oldest of readings) {
      if (bufferedBytes <= budgetBytes) return;
      if (oldest.held.length === 0) continue;
      free(release(oldest));
      giveUp(oldest, 'shed');
    }
  }

  /** @returns what was held of it */
  function release(reading: Reading): Buffer {
    const { held } = reading;
    readings.delete(reading);
    bufferedBytes -= held.length;
    reading.held = NOTHING;
    return held;
  }

  async function hold(reading: Reading): Promise<Body> {
    readings.add(reading);
    try {
      await take(reading, (chunk) => keep(reading, chunk));
    } catch (error) {
      free(release(reading));
      throw error;
    }
    const { length } = reading;
    return { kind: 'buffered', bytes: release(reading).subarray(0, length) };
  }

  async function count(reading: Reading): Promise<Body> {
    await take(reading, () => {});
    return { kind: 'counted', length: reading.length };
  }

  /** Reads nothing more of a shed body until its time is over, or until its connection is ended to make room for another. */
  async function rest(socket: Socket, deadlineMs: number): Promise<void> {
    await setImmediate(); // the request drops what was parsed already, and starts its socket for more
    if (socket.destroyed) return;
    socket.pause();
    await new Promise<void>((resolve) => {
      const deadline = deadlines.add(deadlineMs, end);
      socket.once('close', end);
      function end(): void {
        deadlines.remove(deadline);
        socket.off('close', end);
        resolve();
      }
    });
    await drain(socket);
  }

  async function read(
    request: IncomingMessage,
    { isBuffered, limitBytes, deadlineMs }: ReadOptions,
  ): Promise<Body> {
    if (Number(request.headers['content-length'] ?? 0) > limitBytes) return { kind: 'too-large' };
    const reading: Reading = {
      request,
      limitBytes,
      length: 0,
      held: NOTHING,
      givenUp: undefined,
      previous: undefined,
      next: undefined,
    };
    const deadline = deadlines.add(deadlineMs, () => giveUp(reading, 'late'));
    try {
      return await (isBuffered ? hold(reading) : count(reading));
    } catch (error) {
      request.resume(); // raw-body has paused it, so it would buffer what still comes. Now that is dropped
      if (reading.givenUp === 'shed') await rest(request.socket, deadlineMs);
      const { type } = error as RawBodyError;
      return { kind: reading.givenUp ?? (type === 'entity.too.large' ? 'too-large' : 'incomplete') };
    } finally {
      deadlines.remove(deadline);
    }
  }

  return { read, bufferedBytes: () => bufferedBytes };
}

function giveUp(reading: Reading, why: 'late' | 'shed'): void {
  reading.givenUp ??= why;
  reading.request.emit('aborted');
}

/** Unread bytes in a socket would reset it before the answer is read. */
async function drain(socket: Socket): Promise<void> {
  socket.resume();
  let readBefore = -1;
  for (let turn = 0; turn < DRAIN_TURNS && socket.bytesRead > readBefore; turn++) {
    readBefore = socket.bytesRead;
    await setImmediate();
  }
}

/** Has raw-body read a body to its end. @throws its error, also for what was given up */
async function take(reading: Reading, onChunk: (chunk: Buffer) => void): Promise<void> {
  const write = (chunk: Buffer) => {
    onChunk(chunk);
    reading.length += chunk.length;
    return ''; // of the text that raw-body makes
  };
  const { request, limitBytes: limit } = reading;
  await getRawBody(request, { limit, encoding: 'none', decoder: () => ({ write, end: () => '' }) });
  if (reading.givenUp !== undefined) throw new Error('given up between its end and now');
}

/**
 * The first chunk is kept as it is, since most bodies are one chunk. For more, memory grows by a sixteenth at least: in chunks of
 * one byte a body is copied some sixteen times, and not at each. It never grows past the limit, so that a budget which fits the largest
 * body fits it in any chunks.
 * @returns what is held then
 */
function append({ held, length, limitBytes }: Reading, chunk: Buffer): Buffer {
  if (length === 0) return chunk;
  const neededBytes = length + chunk.length;
  let roomy = held;
  if (neededBytes > held.length) {
    // No slice of the shared pool, which it would keep alive.
    roomy = Buffer.allocUnsafeSlow(
      Math.max(neededBytes, Math.min(limitBytes, length + Math.ceil(length / 16))),
    );
    held.copy(roomy);
    free(held);
  }
  chunk.copy(roomy, length);
  return roomy;
}

/** Frees the memory at once: the garbage collector would let hundreds of megabytes gather first. */
function free({ buffer, length }: Buffer): void {
  // A slice shares its memory with other buffers, which are still used.
  if (length > 0 && buffer instanceof ArrayBuffer && buffer.byteLength === length) buffer.transfer(0);
}
