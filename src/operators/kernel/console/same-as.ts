// How to ask for what a page shows with the command line and with curl. Both lines are for a shell: what a sender wrote stands
// in quotes and can do nothing there.

import { shellWord } from '../../../base/text/shell-word.ts';
import { type Content, html } from '../../../web/index.ts';
import { FORMS } from '../../lists.contract.ts';
import { givenIn, type Query } from './calls.ts';

export type SameAs = {
  /** `tallyhook …`, without the program's name, quoted already. */
  readonly command: string;
  readonly curl: string;
};

export type Call = {
  /** Words of the command line: `['deliveries', 'list']`. */
  readonly command: readonly string[];
  /** Below /api/v1, percent-encoded already. */
  readonly path: string;
  readonly query?: Query;
  /** For the command line, which takes `24h` as people write it. */
  readonly typed?: Query;
  /** Of an action. What it asks for stands here for curl, and in `query` for the command line. */
  readonly body?: object;
};

/** @param origin as the browser knows the operators' port: `http://127.0.0.1:8081` */
export function sameAs(origin: string, { command, path, query = {}, typed = query, body }: Call): SameAs {
  const asked = givenIn(query);
  const parameters = body === undefined ? new URLSearchParams(asked).toString() : '';
  const url = `${origin}/api/v1${path}${parameters === '' ? '' : `?${parameters}`}`;
  const sent = body === undefined ? '' : ` --json ${shellWord(JSON.stringify(body))}`;
  return {
    command: [...endOptions(command).map(shellWord), ...givenIn(typed).flatMap(optionOf)].join(' '),
    curl: `curl -H "Authorization: Bearer $TALLYHOOK_TOKEN"${sent} ${shellWord(url)}`,
  };
}

/** A parameter of the API as an option. The command line goes from page to page by itself, so a cursor has none. */
function optionOf([name, value]: [string, string]): readonly string[] {
  if (name === 'limit') return [`--limit ${value}`];
  const { option, takes } = FORMS.get(name) ?? {};
  if (option === undefined) return [];
  if (takes === undefined) return value === 'true' ? [`--${option}`] : [];
  // Behind `=`, a value may begin with a dash.
  return value.startsWith('-') ? [`--${option}=${shellWord(value)}`] : [`--${option} ${shellWord(value)}`];
}

/** An argument that begins with a dash is no option: `jobs show default -- -rf`. Such a line has no options behind it. */
function endOptions(command: readonly string[]): readonly string[] {
  const first = command.slice(2).findIndex((word) => word.startsWith('-') && !word.startsWith('--'));
  return first === -1 ? command : command.toSpliced(first + 2, 0, '--');
}

export function renderSameAs(same: SameAs | undefined): Content {
  if (same === undefined) return undefined;
  return html`<details class="same-as"><summary>From the command line</summary>
<pre class="wrapped" tabindex="0" aria-label="Command line">tallyhook ${same.command}</pre>
<pre class="wrapped" tabindex="0" aria-label="curl">${same.curl}</pre>
</details>`;
}
