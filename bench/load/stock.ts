// What the generator sends, in order: the next notification, new or a copy of an earlier one, and its bytes. A stock is signed
// before the start and kept in a few large buffers: a hundred thousand small ones would make the garbage collector pause the
// generator during a measurement. Beyond the stock, notifications are signed when they are sent, and counted.

import { createSecretKey } from 'node:crypto';
import { bodyOf, requestOf } from './notifications.ts';

type Sequence = {
  /** The number of the notification to send next. */
  readonly next: () => number;
  /** Number of different ones so far. */
  readonly fresh: () => number;
};

/** The first are all new, so that there is something to copy. Fewer than a warm-up sends. */
const PRELUDE = 1_000;
/** A copy comes so long after the first one that this is answered, and so soon that it is still in the stock. */
const COPY_NEAREST = 300;
const COPY_FARTHEST = 20_000;

/** Spreads copies evenly: of any 100 notifications in a row, `duplicateShare` × 100 are copies of earlier ones. */
export function createSequence(duplicateShare: number): Sequence {
  let position = 0;
  let fresh = 0;
  return {
    next: () => {
      const isCopy = Math.floor((position + 1) * duplicateShare) > Math.floor(position * duplicateShare);
      position += 1;
      if (!isCopy || fresh < PRELUDE) return fresh++;
      const choice = Math.min(COPY_FARTHEST, fresh) - COPY_NEAREST;
      return fresh - 1 - COPY_NEAREST - ((position * 7_919) % choice);
    },
    fresh: () => fresh,
  };
}

export type Stock = {
  readonly request: (number: number) => Buffer;
  readonly signedLate: () => number;
};

const SLAB_BYTES = 64 * 1024 * 1024;

/** Signs the notifications 0 to `count` - 1. Takes about 8 µs for one of half a KiB. */
export function createStock(options: {
  run: string;
  secret: string;
  path: string;
  bodyBytes: number;
  count: number;
}): Stock {
  const { run, bodyBytes, count, path } = options;
  const signing = { key: createSecretKey(options.secret, 'utf8'), path, host: 'tallyhook.example' };
  const sign = (number: number) => requestOf(signing, bodyOf(run, number, bodyBytes));
  const places = new Float64Array(count);
  const lengths = new Uint32Array(count);
  const slabs: Buffer[] = [];
  let end = SLAB_BYTES;
  for (let number = 0; number < count; number++) {
    const text = sign(number);
    if (end + text.length > SLAB_BYTES) {
      slabs.push(Buffer.allocUnsafeSlow(SLAB_BYTES));
      end = 0;
    }
    places[number] = (slabs.length - 1) * SLAB_BYTES + end;
    lengths[number] = text.length;
    end += (slabs.at(-1) as Buffer).write(text, end, 'latin1');
  }
  let late = 0;
  return {
    request: (number) => {
      if (number >= count) {
        late += 1;
        return Buffer.from(sign(number), 'latin1');
      }
      const place = places[number] as number;
      const start = place % SLAB_BYTES;
      const slab = slabs[Math.floor(place / SLAB_BYTES)] as Buffer;
      return slab.subarray(start, start + (lengths[number] as number));
    },
    signedLate: () => late,
  };
}

/** The same bare GET for every number. */
export function createProbes(path: string): Stock {
  const probe = Buffer.from(`GET ${path} HTTP/1.1\r\nHost: tallyhook.example\r\n\r\n`);
  return { request: () => probe, signedLate: () => 0 };
}
