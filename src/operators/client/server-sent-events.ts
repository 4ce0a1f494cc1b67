// Reads server-sent events (WHATWG HTML, 9.2) from a stream of bytes, one at a time and in bounded memory.

import { createParser } from 'eventsource-parser';
import { InvalidAnswerError } from './errors.ts';

export type ServerSentEvent = {
  /** `message` where the stream does not say. */
  readonly event: string;
  readonly data: string;
};

/** Of an event that is not complete. Far above a delivery or publication as JSON. */
const EVENT_MAX_CHARS = 1024 * 1024;

/** Comments, which keep the connection alive, are skipped. @throws InvalidAnswerError for an event without end. */
export async function* readEvents(
  stream: AsyncIterable<Uint8Array>,
): AsyncGenerator<ServerSentEvent, void, undefined> {
  const complete: ServerSentEvent[] = [];
  const parser = createParser({
    maxBufferSize: EVENT_MAX_CHARS,
    onEvent: ({ event = 'message', data }) => complete.push({ event, data }),
    // Its other errors are fields that the standard tells a reader to ignore.
    onError: ({ type }) => {
      if (type === 'max-buffer-size-exceeded')
        throw new InvalidAnswerError('a line of the stream is too long');
    },
  });
  const decoder = new TextDecoder();
  for await (const chunk of stream) {
    parser.feed(decoder.decode(chunk, { stream: true }));
    yield* complete.splice(0);
  }
}
