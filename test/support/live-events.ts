// Listens to the live events of the API as a browser would, and parses them.

import type { Operators } from './operators.ts';

export type LiveEvent<T = Record<string, unknown>> = {
  readonly event: string;
  readonly id: string | undefined;
  readonly value: T;
};

export type Listening = AsyncDisposable & {
  readonly response: Response;
  readonly events: readonly LiveEvent[];
  /** Resolves when the server ended the stream, or it was cut. */
  readonly ended: Promise<'ended' | 'cut'>;
};

/** `await listen(viewer, '?source=team-a')`: from now on no event is missed. */
export async function listen(viewer: Operators, query = ''): Promise<Listening> {
  const hangUp = new AbortController();
  const response = await viewer.fetch(`/live${query}`, { signal: hangUp.signal });
  const events: LiveEvent[] = [];
  const ended = read(response, events);
  return {
    response,
    events,
    ended,
    [Symbol.asyncDispose]: async () => {
      hangUp.abort();
      await ended;
    },
  };
}

async function read(response: Response, events: LiveEvent[]): Promise<'ended' | 'cut'> {
  const decoder = new TextDecoder();
  let text = '';
  try {
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk as Uint8Array, { stream: true });
      const blocks = text.split('\n\n');
      text = blocks.pop() ?? '';
      events.push(...blocks.flatMap(parseEvent));
    }
    return 'ended';
  } catch {
    return 'cut';
  }
}

/** An empty list for a comment. */
export function parseEvent(block: string): LiveEvent[] {
  const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1];
  const [event, content] = [field('event'), field('data')];
  if (event === undefined || content === undefined) return [];
  return [{ event, id: field('id'), value: JSON.parse(content) as Record<string, unknown> }];
}
