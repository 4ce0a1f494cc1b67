// Finds the rows of a list that appeared since the last look, on whichever replica. Rows are stamped when their statement
// begins and seen when it is committed, so each look goes back as far as a statement can take and leaves out what it
// has found before: reading on from the last time or id would lose whatever commits late.

import { type DatabaseConnection, type Statement, TIME_FORMAT } from '../../ledger/index.ts';

/** Names a row in the index of its time, which has microseconds. */
export type RowKey = { readonly id: string; readonly at: string };

export type Look<Row> = {
  readonly rows: readonly Row[];
  /** There were so many more, at least. */
  readonly leftOut: number;
  /** When the first of those was stamped. */
  readonly since: string | undefined;
};

export type Newcomers = {
  /**
   * Has the newest ones read, in order. What was not read, since `read` rejected, is found again by the next look. The
   * first look finds none: it takes note of what is there.
   */
  readonly look: <Row>(read: (keys: readonly RowKey[]) => Promise<readonly Row[]>) => Promise<Look<Row>>;
};

export type NewcomersOf = {
  readonly table: 'deliveries' | 'publications';
  /** Leads the index that ends in `id`. */
  readonly time: 'received_at' | 'published_at';
};

/**
 * So many ids of the last seconds are looked at: at the rates that this service reaches on one machine, all of them.
 * 200 bytes each in memory.
 */
const IDS_MAX = 20_000;

/** Reads the end of one index and not the table, as long as Postgres has it in the visibility map. */
const lookAt = ({ table, time }: NewcomersOf): Statement => ({
  name: `new-${table}`,
  text: `
select asked.at as asked_at, found.id, found.at
from (select to_char(now() at time zone 'UTC', ${TIME_FORMAT}) as at) as asked
left join lateral (
  select id::text as id, to_char(${time} at time zone 'UTC', ${TIME_FORMAT}) as at
  from ${table}
  where ${time} >= coalesce($1::timestamptz, now()) - make_interval(secs => $2)
  order by ${time} desc, ${table}.id desc limit $3
) as found on true`,
});

export function createNewcomers(options: {
  connection: DatabaseConnection;
  of: NewcomersOf;
  /** Longer than any statement that adds rows takes to commit. */
  lateMs: number;
  /** Rows that one look gives at most: the newest. */
  rowsMax: number;
}): Newcomers {
  const { connection, lateMs, rowsMax } = options;
  const statement = lookAt(options.of);
  let askedAt: string | null = null;
  const seen = new Map<string, string>(); // and when they were stamped

  async function look<Row>(read: (keys: readonly RowKey[]) => Promise<readonly Row[]>): Promise<Look<Row>> {
    const found = await connection.execute<{ asked_at: string; id: string | null; at: string | null }>(
      statement,
      [askedAt, lateMs / 1_000, IDS_MAX],
    );
    const unseen = found.flatMap(({ id, at }) =>
      id === null || at === null || seen.has(id) ? [] : [{ id, at }],
    );
    const newest = askedAt === null ? [] : unseen.slice(0, rowsMax).toReversed();
    const rows = newest.length > 0 ? await read(newest) : [];
    const leftOut = askedAt === null ? 0 : unseen.length - newest.length;
    for (const { id, at } of unseen) seen.set(id, at);
    forgetBefore(askedAt);
    const [{ asked_at: now } = { asked_at: '' }] = found;
    if (askedAt === null || now > askedAt) askedAt = now; // the clock of another server may be behind
    return { rows, leftOut, since: leftOut > 0 ? unseen.at(-1)?.at : undefined };
  }

  /** No later look goes back further than this one did. */
  function forgetBefore(time: string | null): void {
    if (time === null) return;
    const oldestMs = Date.parse(time) - lateMs;
    for (const [id, at] of seen) if (Date.parse(at) < oldestMs) seen.delete(id);
  }

  return { look };
}
