// Cursors: the position of a page's last item, in a form that clients treat as opaque.

type List = 'jobs' | 'deliveries';

export function toCursor(list: List, last: number | string): string {
  return Buffer.from(`${list}:${last}`).toString('base64url');
}

/** @returns the position; undefined for text that is no cursor of this list. */
export function fromCursor(list: List, cursor: string): string | undefined {
  const text = Buffer.from(cursor, 'base64url').toString('utf8');
  const last = text.slice(list.length + 1);
  return toCursor(list, last) === cursor ? last : undefined;
}
