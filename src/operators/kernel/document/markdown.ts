// The Markdown of our own documents as HTML: headings, paragraphs, lists, tables and code, and in their text code, links, bold and
// italics. It is made for what docs/ has, and not for what others write: other constructs stay the text that they are.

import { type Content, type Html, html } from '../../../web/index.ts';
import { placeOfAnchor } from '../view/documents.ts';

/** Where a link of a document leads: nowhere for a file that the console does not have. */
export type Resolve = (target: string) => string | undefined;

/** As GitHub makes it of a heading. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');

const HEADING = /^(#+) (.+)$/;
const FENCE = /^\s*```/;
const ITEM = /^(?:[-*]|\d+\.) /;
const TITLE = /^# (.+)$/m;
/** A number within a paragraph may come to stand at the beginning of a line. */
const ENDS_PARAGRAPH = /^(?:\s*```|#+ |\||[-*] |1\. )/;
/** Pictures are no part of the package, and comments are for programs. */
const LEFT_OUT = /^(?:!\[.*\]\(.*\)|<!--.*-->)$/;

/** Of a page: its first heading. */
export const titleOf = (text: string): string => (TITLE.exec(text)?.[1] ?? '').replaceAll('`', '');

/** All but the title. */
export function renderMarkdown(text: string, resolve: Resolve): Html {
  const lines = text.replace(TITLE, '').split('\n');
  const blocks: Html[] = [];
  let at = 0;
  /** The lines from here on for which it holds. */
  const take = (holds: (line: string) => boolean): string[] => {
    const start = at;
    while (at < lines.length && holds(lines[at] ?? '')) at += 1;
    return lines.slice(start, at);
  };
  while (at < lines.length) {
    const line = lines[at] ?? '';
    const [, marks = '', heading = ''] = HEADING.exec(line) ?? [];
    if (line.trim() === '' || LEFT_OUT.test(line)) at += 1;
    else if (FENCE.test(line)) {
      at += 1;
      const code = take((each) => !FENCE.test(each));
      at += 1;
      blocks.push(html`<pre tabindex="0">${code.join('\n')}</pre>\n`);
    } else if (heading !== '') {
      at += 1;
      blocks.push(renderHeading(marks.length, heading, resolve));
    } else if (line.startsWith('|'))
      blocks.push(
        renderTable(
          take((each) => each.startsWith('|')),
          resolve,
        ),
      );
    else if (ITEM.test(line)) {
      blocks.push(
        renderList(
          take((each) => ITEM.test(each) || (/^\s+\S/.test(each) && !FENCE.test(each))),
          resolve,
        ),
      );
    } else {
      at += 1;
      const paragraph = [line, ...take((each) => each.trim() !== '' && !ENDS_PARAGRAPH.test(each))];
      blocks.push(html`<p>${renderInline(paragraph.join(' '), resolve)}</p>\n`);
    }
  }
  return html`${blocks}`;
}

function renderHeading(level: number, heading: string, resolve: Resolve): Html {
  const place = placeOfAnchor(anchorOf(heading));
  const text = renderInline(heading, resolve);
  return level === 2 ? html`<h2 id="${place}">${text}</h2>\n` : html`<h3 id="${place}">${text}</h3>\n`;
}

/** What continues an item is indented below it. */
function renderList(lines: readonly string[], resolve: Resolve): Html {
  const items: string[] = [];
  for (const line of lines) {
    if (ITEM.test(line)) items.push(line.replace(ITEM, ''));
    else items.push(`${items.pop() ?? ''} ${line.trim()}`);
  }
  const shown = items.map((item) => html`<li>${renderInline(item, resolve)}</li>\n`);
  return /^\d/.test(lines[0] ?? '') ? html`<ol>\n${shown}</ol>\n` : html`<ul>\n${shown}</ul>\n`;
}

function renderTable(lines: readonly string[], resolve: Resolve): Html {
  const [head = [], _rule, ...rows] = lines.map(cellsOf);
  const cell = (text: string) => renderInline(text, resolve);
  const headed = head.some((text) => text !== '');
  return html`<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>
${headed && html`<thead><tr>${head.map((text) => (text === '' ? html`<td></td>` : html`<th scope="col">${cell(text)}</th>`))}</tr></thead>\n`}<tbody>
${rows.map((row) => html`<tr>${row.map((text) => html`<td>${cell(text)}</td>`)}</tr>\n`)}</tbody>
</table></div>\n`;
}

/** A bar with a backslash before it belongs to its cell. */
const cellsOf = (line: string): string[] =>
  line
    .trim()
    .replace(/^\|/, '')
    .replace(/\|$/, '')
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replaceAll('\\|', '|'));

/** In this order: in code nothing else has a meaning. */
const INLINE =
  /(?<code>(?<ticks>`+)(.+?)\k<ticks>(?!`))|\*\*(?<bold>.+?)\*\*|\*(?<em>[^*\s][^*]*)\*|\[(?<text>(?:[^[\]]|`[^`]*`)+)\]\((?<target>[^)\s]+)\)/g;

function renderInline(text: string, resolve: Resolve): Content {
  const parts: Content[] = [];
  let from = 0;
  for (const found of text.matchAll(INLINE)) {
    parts.push(text.slice(from, found.index), renderFound(found, resolve));
    from = found.index + found[0].length;
  }
  return [...parts, text.slice(from)];
}

function renderFound({ 3: code, groups = {} }: RegExpExecArray, resolve: Resolve): Content {
  if (code !== undefined) return html`<code>${code.trim()}</code>`;
  if (groups['bold'] !== undefined) return html`<strong>${renderInline(groups['bold'], resolve)}</strong>`;
  if (groups['em'] !== undefined) return html`<em>${renderInline(groups['em'], resolve)}</em>`;
  const text = renderInline(groups['text'] ?? '', resolve);
  const href = resolve(groups['target'] ?? '');
  return href === undefined ? text : html`<a href="${href}">${text}</a>`;
}
