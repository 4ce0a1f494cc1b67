// The bytes of an answer that may have no end, or only its beginning. A connection that is dead without a word, as after a
// computer slept, would never end by itself: silence ends it.

import { NoAnswerError } from '../errors.ts';

export type Bytes = AsyncGenerator<Uint8Array, void, undefined>;

/**
 * Calls `onSilence`, which has to end `body`, when nothing came for so long. Time that the reader takes between two chunks
 * does not count.
 * @throws NoAnswerError with the code `cut`, or the reason of `signal` if that was aborted
 */
export async function* bytesOf(
  body: Response['body'],
  signal: AbortSignal | undefined,
  { silenceMs, onSilence }: { silenceMs: number; onSilence: () => void },
): Bytes {
  let timer = setTimeout(onSilence, silenceMs);
  try {
    for await (const chunk of body ?? []) {
      clearTimeout(timer);
      yield chunk;
      timer = setTimeout(onSilence, silenceMs);
    }
  } catch (error) {
    signal?.throwIfAborted();
    throw new NoAnswerError('cut', 'the answer was cut before its end', { cause: error });
  } finally {
    clearTimeout(timer);
  }
}

/** Of a longer stream only the beginning; the rest is not read. */
export async function readUpTo(maxBytes: number, stream: AsyncIterable<unknown>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let left = maxBytes;
  for await (const chunk of stream as AsyncIterable<Uint8Array>) {
    chunks.push(chunk.subarray(0, left));
    left -= chunk.length;
    if (left <= 0) break;
  }
  return Buffer.concat(chunks);
}
