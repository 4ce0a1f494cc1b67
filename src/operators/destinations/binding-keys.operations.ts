// Which of our events a binding key takes (AMQP 0-9-1, 3.1.3.3). Pure.

import { SOURCE_NAME } from '../../base/text/source-name.ts';
import { KINDS, type Kind, routingKey } from '../../event/index.ts';

/** `sources`: null for all of them. */
export type Received = { readonly kind: Kind; readonly sources: readonly string[] | null };

/** No source's name, and no word of a key. */
const ANY_SOURCE = '\0';

/** A source's name is one word of the routing key: a key takes all sources, or those that it names. */
export function receivedBy(bindingKey: string, prefix: string): Received[] {
  const pattern = bindingKey.split('.');
  const takes = (kind: Kind, source: string) => matches(pattern, routingKey(prefix, kind, source).split('.'));
  const named = [...new Set(pattern.filter((word, at) => mayBeSource(word, at === pattern.length - 1)))];
  return KINDS.flatMap((kind): Received[] => {
    if (takes(kind, ANY_SOURCE)) return [{ kind, sources: null }];
    const sources = named.filter((source) => takes(kind, source));
    return sources.length === 0 ? [] : [{ kind, sources }];
  });
}

/** Who binds `#.failed.#` means the kind, and no source of that name. */
const mayBeSource = (word: string, isLast: boolean) =>
  SOURCE_NAME.test(word) && (isLast || !KINDS.some((kind) => kind === word));

/** What any of them receives, by kind. */
export function together(received: readonly Received[]): Received[] {
  return KINDS.flatMap((kind): Received[] => {
    const own = received.filter((one) => one.kind === kind);
    if (own.length === 0) return [];
    if (own.some(({ sources }) => sources === null)) return [{ kind, sources: null }];
    return [{ kind, sources: [...new Set(own.flatMap(({ sources }) => sources ?? []))].toSorted() }];
  });
}

/** `*` is one word, `#` any number. In time that grows with both lengths: others choose the pattern. */
function matches(pattern: readonly string[], words: readonly string[]): boolean {
  // Whether the pattern so far takes the first n words.
  let takes = [true, ...words.map(() => false)];
  for (const part of pattern) {
    if (part === '#') {
      const from = takes.indexOf(true);
      takes = takes.map((_, count) => from !== -1 && count >= from);
    } else {
      takes = [
        false,
        ...words.map((word, index) => Boolean(takes[index]) && (part === '*' || part === word)),
      ];
    }
  }
  return takes.at(-1) ?? false;
}
