// Server-sent events for one listener (HTML standard, 9.2), as a stream that is read no faster than the listener reads.
// Buffers a bounded number of bytes: beyond it the oldest frames are dropped, and a gap event tells the listener how many.

import { Readable } from 'node:stream';

export type LiveStream = {
  readonly stream: Readable;
  /** `at`: when it happened. A gap event shows it if the frame is dropped. */
  readonly send: (frame: { text: string; at: string }) => void;
  /** Sends a comment that keeps the connection alive, if nothing else is buffered. */
  readonly beat: () => void;
  /** Milliseconds for which the buffer has waited without being read; 0 if it is empty. */
  readonly stalledMs: () => number;
  readonly bufferedBytes: () => number;
  /** Ends the stream of a listener that has read everything. Cuts any other, since it may never read the rest. */
  readonly end: () => void;
};

export type Gap = {
  readonly because: 'too_slow' | 'too_many';
  readonly left_out: number;
  readonly since: string;
};

/** More than one poll of queries.ts finds, for a listener with a slow connection. 32 listeners that do not read take 32 MiB. */
const BUFFERED_BYTES_MAX = 1024 * 1024;
/** What the stream itself buffers ahead of the reader. */
const HIGH_WATER_BYTES = 16 * 1024;

export function frameOf(event: 'delivery' | 'publication' | 'gap', json: string, id?: string): string {
  return `${id === undefined ? '' : `id: ${id}\n`}event: ${event}\ndata: ${json}\n\n`;
}

export function createLiveStream(options: {
  /** Monotonic milliseconds. */
  now: () => number;
  bufferedBytesMax?: number;
}): LiveStream {
  const { now, bufferedBytesMax = BUFFERED_BYTES_MAX } = options;
  const waiting: { bytes: Buffer; at: string }[] = [];
  let bufferedBytes = 0;
  let wantsMore = false; // the reader has read all that was pushed
  let stalledSinceMs = now();
  let dropped: { count: number; since: string } | undefined;
  const stream = new Readable({ highWaterMark: HIGH_WATER_BYTES, read: flow });

  function flow(): void {
    wantsMore = true;
    stalledSinceMs = now();
    if (dropped !== undefined && waiting.length > 0) {
      const gap: Gap = { because: 'too_slow', left_out: dropped.count, since: dropped.since };
      dropped = undefined;
      wantsMore = stream.push(frameOf('gap', JSON.stringify(gap)));
    }
    while (wantsMore) {
      const oldest = waiting.shift();
      if (oldest === undefined) return;
      bufferedBytes -= oldest.bytes.length;
      wantsMore = stream.push(oldest.bytes);
    }
  }

  function send({ text, at }: { text: string; at: string }): void {
    if (stream.destroyed) return;
    if (waiting.length === 0) stalledSinceMs = now();
    const bytes = Buffer.from(text);
    waiting.push({ bytes, at });
    bufferedBytes += bytes.length;
    while (bufferedBytes > bufferedBytesMax) drop();
    if (wantsMore) flow();
  }

  function drop(): void {
    const oldest = waiting.shift();
    if (oldest === undefined) return;
    bufferedBytes -= oldest.bytes.length;
    dropped ??= { count: 0, since: oldest.at };
    dropped.count += 1;
  }

  return {
    stream,
    send,
    beat: () => {
      if (wantsMore && !stream.destroyed) wantsMore = stream.push(': still here\n\n');
    },
    stalledMs: () => (waiting.length > 0 ? now() - stalledSinceMs : 0),
    bufferedBytes: () => bufferedBytes,
    end: () => {
      if (stream.destroyed) return;
      if (wantsMore && stream.readableLength === 0) stream.push(null);
      else stream.destroy();
    },
  };
}
