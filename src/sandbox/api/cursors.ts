// Where a list goes on. Opaque to clients, who should not count on what is in it; anything that we did not make is known
// for it.

type List = 'jobs' | 'deliveries';

export function toCursor(list: List, last: number | string): string {
  return Buffer.from(`${list}:${last}`).toString('base64url');
}

/** @returns undefined for what is no cursor of this list */
export function fromCursor(list: List, cursor: string): string | undefined {
  const text = Buffer.from(cursor, 'base64url').toString('utf8');
  const last = text.slice(list.length + 1);
  return toCursor(list, last) === cursor ? last : undefined;
}
