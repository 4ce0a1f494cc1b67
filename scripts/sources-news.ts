// Prints what the relay logs about the files of sources and secrets, which a developer edits while it runs: that they were
// read again, or why not.

import { parseIfJson } from '../src/base/json/json.ts';
import { complain, paint, say } from './output.ts';
import type { Program } from './program.ts';

const POLL_MS = 500;
/** As `src/intake/sources.ts` logs it. */
const BROKEN = /^(?:SOURCES_FILE|SIGNING_SECRETS_FILE) is broken/;
const LOADED = 'sources loaded';

export type SourcesNews = { readonly isLoaded: boolean; readonly text: string };

/** Until the process ends. `onLoaded` is called when the relay has read them. */
export function tellOfSources({ newLines }: Pick<Program, 'newLines'>, onLoaded: () => void): void {
  const look = () => {
    for (const { isLoaded, text } of newLines().flatMap((line) => newsIn(line) ?? [])) {
      if (isLoaded) onLoaded();
      if (isLoaded) say(paint('green', text));
      else complain(paint('red', text));
    }
  };
  setInterval(look, POLL_MS).unref();
}

/** Of a line of the log. Undefined if it is about something else, or not JSON, as with LOG_PRETTY. */
export function newsIn(line: string): SourcesNews | undefined {
  if (!line.includes(LOADED) && !line.includes('is broken')) return undefined;
  const { msg, sources, faults } = (parseIfJson(line) ?? {}) as {
    msg?: string;
    sources?: readonly string[];
    faults?: readonly string[];
  };
  if (msg === LOADED) return { isLoaded: true, text: `sources loaded: ${sources?.join(', ')}` };
  if (msg === undefined || !BROKEN.test(msg)) return undefined;
  return { isLoaded: false, text: `${msg}: ${faults?.join('; ')}` };
}
