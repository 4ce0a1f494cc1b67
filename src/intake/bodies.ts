// Reads the bodies of deliveries that nobody has verified yet, within limits: of size and time for each, and of memory for all
// that are read at once. A body that no signature can match is counted and dropped as it arrives. Memory is counted by what
// has arrived, never by what a request announces.

import type { IncomingMessage } from 'node:http';
import { createLinkedList, type Linked } from '../linked-list.ts';
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

/** Smaller chunks are gathered in blocks of this: each buffer costs some hundred bytes beside its own. */
const BLOCK_BYTES = 4 * 1024;

/** A body as far as it has arrived. */
type Buffered = {
  readonly blocks: Buffer[];
  /** What is free at the end of the last block. */
  roomBytes: number;
  /** What all of it takes in memory. */
  costBytes: number;
};

interface Reading extends Linked<Reading> {
  readonly buffered: Buffered;
  readonly shed: () => void;
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

  function charge(bytes: number): void {
    bufferedBytes += bytes;
    for (const { buffered, shed } of readings) {
      if (bufferedBytes <= budgetBytes) return;
      if (buffered.costBytes > 0) shed();
    }
  }

  function read(
    request: IncomingMessage,
    { isBuffered, limitBytes, deadlineMs }: ReadOptions,
  ): Promise<Body> {
    const announced = Number(request.headers['content-length'] ?? 0);
    if (announced > limitBytes) return Promise.resolve({ kind: 'too-large' });
    return new Promise((resolve) => {
      const buffered: Buffered = { blocks: [], roomBytes: 0, costBytes: 0 };
      const reading: Reading = { buffered, shed, previous: undefined, next: undefined };
      let length = 0;
      let isShed = false;
      const deadline = deadlines.add(deadlineMs, () => {
        if (isShed) request.socket.resume(); // unread bytes in the socket would reset it before the answer is read
        finish({ kind: isShed ? 'shed' : 'late' });
      });

      function stopReading({ isKept }: { isKept: boolean }): void {
        request.off('data', onData).off('end', onEnd);
        readings.delete(reading);
        bufferedBytes -= buffered.costBytes;
        if (!isKept) for (const block of buffered.blocks) free(block);
        Object.assign(buffered, { costBytes: 0, roomBytes: 0 });
        buffered.blocks.length = 0; // now, and not when the connection is gone
      }

      /** The socket is paused until the time is over, or until the connection is ended to make room for another. */
      function shed(): void {
        isShed = true;
        stopReading({ isKept: false });
        request.socket.pause();
      }

      function finish(body: Body): void {
        deadlines.remove(deadline);
        stopReading({ isKept: body.kind === 'buffered' });
        request.off('error', onClose).off('close', onClose);
        // The request is not paused: without a listener, what still comes is dropped until the answer ends the connection. A
        // paused request would buffer some of it.
        resolve(body);
      }

      function onData(chunk: Buffer): void {
        length += chunk.length;
        if (length > limitBytes) return finish({ kind: 'too-large' });
        if (isBuffered) charge(append(buffered, chunk));
      }

      function onEnd(): void {
        if (!isBuffered) return finish({ kind: 'counted', length });
        const [first] = buffered.blocks;
        const isWhole = first !== undefined && first.length === length;
        finish({ kind: 'buffered', bytes: isWhole ? first : Buffer.concat(buffered.blocks, length) });
      }

      const onClose = () => {
        // What was shed may have been the last of it. The request is then closed since it is complete, and its answer waits.
        if (isShed && request.complete) return;
        finish({ kind: isShed ? 'shed' : 'incomplete' });
      };

      if (isBuffered) readings.add(reading);
      request.on('data', onData).on('end', onEnd).on('error', onClose).on('close', onClose);
    });
  }

  return { read, bufferedBytes: () => bufferedBytes };
}

/** Frees the memory at once: the garbage collector would let hundreds of megabytes gather first. */
function free({ buffer, length }: Buffer): void {
  // A slice shares its memory with other buffers, which are still used.
  if (buffer instanceof ArrayBuffer && buffer.byteLength === length) buffer.transfer(0);
}

/**
 * The first chunk is kept as it is, since most bodies are one chunk, and so are large ones. Small ones are copied into blocks:
 * a body in chunks of one byte would cost hundreds for each.
 * @returns what that costs in memory
 */
function append(buffered: Buffered, chunk: Buffer): number {
  const { blocks } = buffered;
  const last = blocks.at(-1);
  const filledBytes = Math.min(buffered.roomBytes, chunk.length);
  if (last !== undefined && filledBytes > 0)
    chunk.copy(last, last.length - buffered.roomBytes, 0, filledBytes);
  buffered.roomBytes -= filledBytes;
  const restBytes = chunk.length - filledBytes;
  if (restBytes === 0) return 0;
  let costBytes = chunk.length;
  if (last === undefined || restBytes >= BLOCK_BYTES) {
    blocks.push(chunk.subarray(filledBytes));
  } else {
    const block = Buffer.allocUnsafeSlow(BLOCK_BYTES); // no slice of the shared pool, which it would keep alive
    chunk.copy(block, 0, filledBytes);
    blocks.push(block);
    buffered.roomBytes = BLOCK_BYTES - restBytes;
    costBytes = BLOCK_BYTES;
  }
  buffered.costBytes += costBytes;
  return costBytes;
}
