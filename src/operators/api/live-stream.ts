// Server-sent events for one listener (HTML standard, 9.2), as a stream that is read no faster than the listener reads.
// Holds a bounded number of bytes: what does not fit any more is the oldest, which is dropped, counted and told.

import { Readable } from 'node:stream';

export type LiveStream = {
  readonly stream: Readable;
  /** `at`: when it happened, told in a gap if it is dropped. */
  readonly send: (frame: { text: string; at: string }) => void;
  /** A comment that keeps connections alive, where nothing else is on its way. */
  readonly beat: () => void;
  /** Milliseconds for which something has waited without being read; 0 if nothing waits. */
  readonly stalledMs: () => number;
  readonly heldBytes: () => number;
  /** A listener that has read all there was is told the end; another is cut, since it may never read. */
  readonly end: () => void;
};

export type Gap = {
  readonly because: 'too_slow' | 'too_many';
  readonly left_out: number;
  readonly since: string;
};

/** All of one look with room to spare, for a reader that is only far away. 32 listeners that do not read hold 32 MiB. */
const HELD_BYTES_MAX = 1024 * 1024;
/** Handed on ahead of the reader. */
const HIGH_WATER_BYTES = 16 * 1024;

export function frameOf(event: 'delivery' | 'publication' | 'gap', json: string, id?: string): string {
  return `${id === undefined ? '' : `id: ${id}\n`}event: ${event}\ndata: ${json}\n\n`;
}

export function createLiveStream(options: {
  /** Monotonic milliseconds. */
  now: () => number;
  heldBytesMax?: number;
}): LiveStream {
  const { now, heldBytesMax = HELD_BYTES_MAX } = options;
  const waiting: { bytes: Buffer; at: string }[] = [];
  let heldBytes = 0;
  let isAsked = false; // the reader wants more than there was
  let stalledSinceMs = now();
  let dropped: { count: number; since: string } | undefined;
  const stream = new Readable({ highWaterMark: HIGH_WATER_BYTES, read: flow });

  function flow(): void {
    isAsked = true;
    stalledSinceMs = now();
    if (dropped !== undefined && waiting.length > 0) {
      const gap: Gap = { because: 'too_slow', left_out: dropped.count, since: dropped.since };
      dropped = undefined;
      isAsked = stream.push(frameOf('gap', JSON.stringify(gap)));
    }
    while (isAsked && waiting.length > 0) {
      const { bytes } = waiting.shift() as { bytes: Buffer };
      heldBytes -= bytes.length;
      isAsked = stream.push(bytes);
    }
  }

  function send({ text, at }: { text: string; at: string }): void {
    if (stream.destroyed) return;
    if (waiting.length === 0) stalledSinceMs = now();
    const bytes = Buffer.from(text);
    waiting.push({ bytes, at });
    heldBytes += bytes.length;
    while (heldBytes > heldBytesMax) drop();
    if (isAsked) flow();
  }

  function drop(): void {
    const oldest = waiting.shift();
    if (oldest === undefined) return;
    heldBytes -= oldest.bytes.length;
    dropped ??= { count: 0, since: oldest.at };
    dropped.count += 1;
  }

  return {
    stream,
    send,
    beat: () => {
      if (isAsked && !stream.destroyed) isAsked = stream.push(': still here\n\n');
    },
    stalledMs: () => (waiting.length > 0 ? now() - stalledSinceMs : 0),
    heldBytes: () => heldBytes,
    end: () => {
      if (stream.destroyed) return;
      if (isAsked && stream.readableLength === 0) stream.push(null);
      else stream.destroy();
    },
  };
}
