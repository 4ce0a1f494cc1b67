// The fields in which two bodies differ. Bodies are compared as the ledger compares them: by their content and with every digit
// of their numbers, and not by their text.

import { typeOfJson } from '../../base/json/json-type.ts';
import { canonicalJson, decodeUtf8, parseExactly, parseLoosely } from '../../ledger/index.ts';
import { DIFFERENCE_TEXT_MAX, DIFFERENCES_MAX, type FieldDifference } from './difference.contract.ts';

type Members = Readonly<Record<string, unknown>>;

/** At most DIFFERENCES_MAX of them. A body that is not JSON differs as a whole. */
export function differencesOf(
  eventBody: Buffer,
  deliveryBody: Buffer,
): { readonly differences: readonly FieldDifference[]; readonly hasMore: boolean } {
  const differences: FieldDifference[] = [];
  for (const difference of compare('', contentOf(eventBody), contentOf(deliveryBody))) {
    if (differences.length === DIFFERENCES_MAX) return { differences, hasMore: true };
    differences.push(difference);
  }
  return { differences, hasMore: false };
}

/** Bytes that are not JSON in UTF-8 are shown as a string. No event was made of such a body. */
function contentOf(body: Buffer): unknown {
  const text = decodeUtf8(body);
  return text !== undefined && parseLoosely(text) ? parseExactly(text) : body.toString('utf8');
}

/** Undefined stands for what is not there. The ledger takes no body that is deep enough to exhaust the stack. */
function* compare(path: string, event: unknown, delivery: unknown): Generator<FieldDifference> {
  if (event === undefined || delivery === undefined || !areAlike(event, delivery)) {
    yield differenceAt(path, event, delivery);
  } else if (typeof event === 'object' && typeOfJson(event) !== 'number') {
    const [members, others] = [event as Members, delivery as Members];
    for (const name of new Set([...Object.keys(members), ...Object.keys(others)])) {
      yield* compare(`${path}/${escaped(name)}`, memberOf(members, name), memberOf(others, name));
    }
  }
}

/** Two objects or two arrays, whose members are to be compared, or the same value. */
function areAlike(a: unknown, b: unknown): boolean {
  const type = typeOfJson(a);
  if (type !== typeOfJson(b)) return false;
  return type === 'object' || type === 'array' || canonicalJson(a) === canonicalJson(b);
}

/** A key may be the name of something that every object has. */
const memberOf = (members: Members, name: string) =>
  Object.hasOwn(members, name) ? members[name] : undefined;

/** For a JSON pointer (RFC 6901, 3). */
const escaped = (name: string) => name.replaceAll('~', '~0').replaceAll('/', '~1');

function differenceAt(path: string, event: unknown, delivery: unknown): FieldDifference {
  const texts = { path, event: textOf(event), delivery: textOf(delivery) };
  const names = ['path', 'event', 'delivery'] as const;
  return {
    path: clip(path),
    event: texts.event && clip(texts.event),
    delivery: texts.delivery && clip(texts.delivery),
    cut: names.filter((name) => (texts[name]?.length ?? 0) > DIFFERENCE_TEXT_MAX),
  };
}

const textOf = (value: unknown): string | null => (value === undefined ? null : JSON.stringify(value));

/** Half of a character at the end is left out. */
const clip = (text: string) => text.slice(0, DIFFERENCE_TEXT_MAX).replace(/[\ud800-\udbff]$/, '');
