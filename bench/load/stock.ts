// What the generator sends, in order: which notification is next, fresh or a copy of an earlier one, and its bytes.
// A stock is signed before the clock starts and kept in slabs: a hundred thousand buffers would cost the
// generator pauses of the garbage collector in the midst of a measurement. Past the stock it signs as it goes, and counts.

import { createSecretKey } from 'node:crypto';
import { bodyOf, requestOf } from './notifications.ts';

type Sequence = {
  /** The number of the notification to send next. */
  readonly next: () => number;
  /** How many different ones were given so far. */
  readonly fresh: () => number;
};

/** All fresh at first, so that there is something to copy; less than a warm-up. */
const PRELUDE = 1_000;
/** Copies come long enough after their first that this one is answered, and soon enough to be found in the stock. */
const COPY_NEAREST = 300;
const COPY_FARTHEST = 20_000;

/** Spreads copies evenly: of 100 notifications in a row, `duplicateShare` × 100 are copies, of any of many before. */
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

/** Signs the notifications 0 to `count` - 1. Takes about 8 µs for each of half a KiB. */
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
