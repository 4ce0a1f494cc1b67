// A body that a sender wrote: as JSON with one member a line, as the text that came, and as bytes. All of it is text: what cannot
// be seen is spelled, and what is long is cut with a word about it.

import { isUtf8 } from 'node:buffer';
import { indentedJson } from '../../../base/json/indented-json.ts';
import { parseIfJson } from '../../../base/json/json.ts';
import { spellInvisibleInLines } from '../../../base/text/invisible-characters.ts';
import { type Content, html } from '../../../web/index.ts';
import { hexOf } from './hex.ts';
import { exact } from './numbers.ts';
import { size } from './texts.ts';

/** Far more than anybody reads, and little enough for a browser. */
const SHOWN_MAX_CHARACTERS = 64 * 1024;
const SHOWN_MAX_BYTES = 16 * 1024;
const INDENT = '  ';

export function renderBody(bytes: Buffer): Content {
  if (bytes.length === 0) return html`<p class="dim">The body is empty.</p>`;
  const text = isUtf8(bytes) ? bytes.toString('utf8') : undefined;
  const pretty = text === undefined ? undefined : prettyJson(text);
  return html`<div class="body">
${pretty !== undefined && renderPart('As formatted JSON', renderText(pretty), true)}
${
  text === undefined
    ? html`<p class="hint">These bytes are not UTF-8 text.</p>`
    : renderPart('As received', renderText(text), pretty === undefined)
}
${renderPart('Bytes', renderHex(bytes), text === undefined)}
</div>`;
}

/** Digits and strings as they came. Undefined for a text that is no JSON, or is too large or too deep to be indented. */
export const prettyJson = (text: string): string | undefined =>
  parseIfJson(text) === undefined ? undefined : indentedJson(text, INDENT);

export function renderText(text: string): Content {
  const shown =
    text.length > SHOWN_MAX_CHARACTERS ? text.slice(0, SHOWN_MAX_CHARACTERS).toWellFormed() : text;
  const spelled = spellInvisibleInLines(shown);
  return html`${
    shown.length < text.length &&
    html`<p class="hint">The first ${exact(shown.length)} of ${exact(text.length)} characters. The download is whole.</p>`
  }${spelled !== shown && html`<p class="hint">Invisible characters are spelled out: ⟨U+0000⟩.</p>`}
<pre class="wrapped" dir="ltr" tabindex="0"${spelled === text && html` data-copy`}>${spelled}</pre>`;
}

function renderHex(bytes: Buffer): Content {
  const shown = bytes.subarray(0, SHOWN_MAX_BYTES);
  return html`${
    shown.length < bytes.length &&
    html`<p class="hint">The first ${size(shown.length)} of ${size(bytes.length)}. The download is whole.</p>`
  }
<pre dir="ltr" tabindex="0">${hexOf(shown)}</pre>`;
}

const renderPart = (name: string, content: Content, isOpen: boolean): Content =>
  html`<details${isOpen && html` open`}><summary>${name}</summary>${content}</details>`;
