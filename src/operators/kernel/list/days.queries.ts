// The parts of a table with a partition for each day (of UTC). A statement for a thousand sources would look for each of them in
// each partition, and Postgres plans it for each partition; but most often the newest few have enough rows for a page.

import { sql } from 'kysely';
import type { Condition } from './access-path.queries.ts';
import type { Bounds } from './range.queries.ts';

/** Whole days before a page's place. Each part has the ones before in it, so together they cost a third more than the last. */
const SPANS_DAYS = [1, 4, 16];
const DAY_MS = 86_400_000;

/**
 * Conditions on rows `t`, from the narrowest part to all that is between the bounds. The values are plain for the planner, which
 * leaves out other partitions; as they are begins of days, they tell it nothing else.
 *
 * @param nowMs only where the search begins: with a wrong clock it takes a statement or two more
 */
export function partsByDay(column: string, { after, from, to }: Bounds, nowMs: number): Condition[] {
  const time = sql.ref(`t.${column}`);
  const since = (ms: number) => sql`${time} >= ${dayOf(ms)}::timestamptz`;
  const placeMs = Date.parse(after?.[0] ?? (typeof to === 'string' ? to : ''));
  // Rows of the future are shown where no place is given.
  const isPast = placeMs < nowMs;
  const newestMs = isPast ? placeMs : nowMs;
  const before = isPast ? [sql`${time} < ${dayOf(placeMs + DAY_MS)}::timestamptz`] : [];
  const oldestMs = from === undefined ? -Infinity : Date.parse(from);
  const begins = SPANS_DAYS.map((days) => newestMs - days * DAY_MS).filter((ms) => ms > oldestMs);
  const all = from === undefined ? [] : [since(oldestMs)];
  return [...begins.map((ms) => [since(ms)]), all].map((conditions) =>
    sql.join([sql`true`, ...conditions, ...before], sql` and `),
  );
}

const dayOf = (ms: number): string => new Date(Math.floor(ms / DAY_MS) * DAY_MS).toISOString();
