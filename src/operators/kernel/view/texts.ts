// Text that senders wrote, and what people do with it: read it as it is, and copy it.

import { spellInvisible } from '../../../base/text/invisible-characters.ts';
import { type Content, html } from '../../../web/index.ts';

/** On one line; what cannot be seen is spelled, so that no text can look like another one or turn what stands beside it. */
export const seen = (text: string | null | undefined): string | undefined =>
  text === null || text === undefined ? undefined : spellInvisible(text);

/** As a sentence begins. */
export const capitalized = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;

const NO_QUEUE = '312 NO_ROUTE';
/** As a full queue with `reject-publish` does, or one that is short of a majority. */
const NACKED = 'nacked by the broker';

/** Why something was not published, on one line. The broker's own words stay in it, since filters take them. */
export function explained(text: string | null): string | null {
  if (text === NO_QUEUE) return `no queue is bound (${NO_QUEUE})`;
  return text === NACKED ? `a queue refused it (${NACKED})` : (seen(text) ?? null);
}

/** An id, in a font whose characters all differ. */
export const id = (text: string | null | undefined): Content =>
  text && html`<bdi class="id">${spellInvisible(text)}</bdi>`;

/** A link whose text is an id. */
export const idLink = (href: string, text: string): Content =>
  html`<a class="id" href="${href}" title="${spellInvisible(text)}"><bdi>${spellInvisible(text)}</bdi></a>`;

/** An id that the script offers to copy. */
export const copyable = (text: string): Content =>
  html`<bdi class="id" data-copy>${spellInvisible(text)}</bdi>`;

/** `184 B`, `12.4 KiB` */
export function size(bytes: number | null): string | undefined {
  if (bytes === null) return undefined;
  if (bytes < 1024) return `${bytes} B`;
  const isSmall = bytes < 1024 ** 2;
  return `${(bytes / (isSmall ? 1024 : 1024 ** 2)).toFixed(1)} ${isSmall ? 'KiB' : 'MiB'}`;
}
