// Reads the bodies of deliveries while nobody has verified them, within one budget of bytes for all that are read at once.
// What no signature could match is counted and let go as it arrives. Costs are counted by what has arrived and is held,
// never by what a request announces.

import type { IncomingMessage } from 'node:http';

export type Body =
  | { readonly kind: 'held'; readonly bytes: Buffer }
  /** It arrived whole, and nothing of it was kept. */
  | { readonly kind: 'counted'; readonly length: number }
  /** Not all of it was read: its connection has to end with the answer. What comes until then is dropped. */
  | { readonly kind: 'too-large' | 'late' | 'incomplete' | 'shed' };

export type Bodies = {
  /** Reads a request's body, at most `limitBytes` and for `patienceMs`. Never rejects. */
  readonly read: (
    request: IncomingMessage,
    options: { isHeld: boolean; limitBytes: number; patienceMs: number },
  ) => Promise<Body>;
  /** Held for all bodies that are being read now. */
  readonly heldBytes: () => number;
};

/** What comes in smaller chunks is gathered in blocks of this: each piece of memory costs some hundred bytes beside its own. */
const BLOCK_BYTES = 4 * 1024;

/** A body as far as it has arrived. */
type Held = {
  readonly blocks: Buffer[];
  /** What is free at the end of the last block. */
  roomBytes: number;
  /** What all of it takes in memory. */
  costBytes: number;
};

type Reading = { readonly held: Held; readonly shed: () => void };

/**
 * Past the budget the body that is read for longest is shed, and not the one that came last: an honest one is there within
 * milliseconds, so the oldest is one that stalls. Its memory is given back at once, and it is told when its time is over:
 * told at once, thousands would come back at once, and what they send again and again would keep everybody else waiting.
 */
export function createBodies({ budgetBytes }: { budgetBytes: number }): Bodies {
  const readings = new Set<Reading>(); // in the order in which they began
  let heldBytes = 0;

  function charge(bytes: number): void {
    heldBytes += bytes;
    for (const { held, shed } of readings) {
      if (heldBytes <= budgetBytes) return;
      if (held.costBytes > 0) shed();
    }
  }

  function read(
    request: IncomingMessage,
    { isHeld, limitBytes, patienceMs }: { isHeld: boolean; limitBytes: number; patienceMs: number },
  ): Promise<Body> {
    const announced = Number(request.headers['content-length'] ?? 0);
    if (announced > limitBytes) return Promise.resolve({ kind: 'too-large' });
    return new Promise((resolve) => {
      const held: Held = { blocks: [], roomBytes: 0, costBytes: 0 };
      const reading: Reading = { held, shed };
      let length = 0;
      let isShed = false;
      const timer = setTimeout(() => {
        if (isShed) request.socket.resume(); // or what it still sends would cut the answer off
        finish({ kind: isShed ? 'shed' : 'late' });
      }, patienceMs);

      function stopReading({ isKept }: { isKept: boolean }): void {
        request.off('data', onData).off('end', onEnd);
        readings.delete(reading);
        heldBytes -= held.costBytes;
        if (!isKept) for (const block of held.blocks) free(block);
        Object.assign(held, { costBytes: 0, roomBytes: 0 });
        held.blocks.length = 0; // now, and not when the connection is gone
      }

      /** What it still sends waits on its side, until its time is over or its connection makes room for another. */
      function shed(): void {
        isShed = true;
        stopReading({ isKept: false });
        request.socket.pause();
      }

      function finish(body: Body): void {
        clearTimeout(timer);
        stopReading({ isKept: body.kind === 'held' });
        request.off('error', onBroken).off('close', onBroken);
        // What still comes is dropped, since nobody listens, until the answer has ended the connection. A paused request
        // would gather some of it.
        resolve(body);
      }

      function onData(chunk: Buffer): void {
        length += chunk.length;
        if (length > limitBytes) return finish({ kind: 'too-large' });
        if (isHeld) charge(keep(held, chunk));
      }

      function onEnd(): void {
        if (!isHeld) return finish({ kind: 'counted', length });
        const [first] = held.blocks;
        const isWhole = first !== undefined && first.length === length;
        finish({ kind: 'held', bytes: isWhole ? first : Buffer.concat(held.blocks, length) });
      }

      const onBroken = () => finish({ kind: 'incomplete' });

      if (isHeld) readings.add(reading);
      request.on('data', onData).on('end', onEnd).on('error', onBroken).on('close', onBroken);
    });
  }

  return { read, heldBytes: () => heldBytes };
}

/** Gives its memory back at once: the collector would let hundreds of megabytes gather first. */
function free({ buffer, length }: Buffer): void {
  // Of one that is a part of other memory, others may hold the rest.
  if (buffer instanceof ArrayBuffer && buffer.byteLength === length) buffer.transfer(0);
}

/**
 * Adds a chunk. The first is kept as it is, since most bodies are one, and so are large ones; small ones are copied, or a
 * body in chunks of one byte would cost hundreds for each.
 * @returns what that costs in memory
 */
function keep(held: Held, chunk: Buffer): number {
  const { blocks } = held;
  const last = blocks.at(-1);
  const filledBytes = Math.min(held.roomBytes, chunk.length);
  if (last !== undefined && filledBytes > 0) chunk.copy(last, last.length - held.roomBytes, 0, filledBytes);
  held.roomBytes -= filledBytes;
  const restBytes = chunk.length - filledBytes;
  if (restBytes === 0) return 0;
  let costBytes = chunk.length;
  if (last === undefined || restBytes >= BLOCK_BYTES) {
    blocks.push(chunk.subarray(filledBytes));
  } else {
    const block = Buffer.allocUnsafeSlow(BLOCK_BYTES); // not a slice of memory that others would keep alive
    chunk.copy(block, 0, filledBytes);
    blocks.push(block);
    held.roomBytes = BLOCK_BYTES - restBytes;
    costBytes = BLOCK_BYTES;
  }
  held.costBytes += costBytes;
  return costBytes;
}
