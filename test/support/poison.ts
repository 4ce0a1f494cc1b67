// Brings this process into the state in which V8's JSON.parse mangles keys with escapes (nodejs/node#63785).

import { readExactly } from './exact-json.ts';

/** V8 forgets what it learned from an object with the object. */
const kept: unknown[] = [];

/**
 * From now on JSON.parse reads another key where an object goes `{<before>,"<escaped>":…}`. Only for some thousand objects
 * a process, each of which begins in its own way: then V8 gives up the short cut in which the bug is.
 * @param before members as JSON text; at least one.
 * @param escaped a key as it stands between its quotes, with an escape in it.
 */
export function poison(before: string, escaped: string): void {
  const { length } = readExactly(`"${escaped}"`) as string;
  kept.push(JSON.parse(`{${before},${JSON.stringify(escaped.slice(0, length))}:1}`));
}
