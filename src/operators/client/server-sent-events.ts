// Reads server-sent events (WHATWG HTML, 9.2) out of a stream of bytes, one at a time and in bounded memory.

import { InvalidAnswerError } from './errors.ts';

export type ServerSentEvent = {
  /** `message` where the stream does not say. */
  readonly event: string;
  readonly data: string;
};

/** Far above a delivery or publication as JSON. */
const LINE_MAX_CHARS = 1024 * 1024;

/** Comments, which keep the connection alive, are passed over. @throws InvalidAnswerError for a line without end. */
export async function* readEvents(
  stream: AsyncIterable<Uint8Array>,
): AsyncGenerator<ServerSentEvent, void, undefined> {
  let event = 'message';
  let lines: string[] = [];
  for await (const line of readLines(stream)) {
    if (line === '') {
      if (lines.length > 0) yield { event, data: lines.join('\n') };
      event = 'message';
      lines = [];
      continue;
    }
    const [, name = '', value = ''] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
    if (name === 'event') event = value;
    if (name === 'data') lines.push(value);
  }
}

async function* readLines(stream: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of stream) {
    rest += decoder.decode(chunk, { stream: true });
    const lines = rest.split(/\r?\n/);
    rest = lines.pop() ?? '';
    if (rest.length > LINE_MAX_CHARS) throw new InvalidAnswerError('a line of the stream is too long');
    yield* lines;
  }
}
