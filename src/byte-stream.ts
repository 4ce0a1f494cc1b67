// The bytes of an answer that may have no end. A connection that is dead without a word, as after a computer slept, would
// never end by itself: silence ends it.

import { NoAnswerError } from './errors.ts';

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
