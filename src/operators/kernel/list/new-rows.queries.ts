// Polls a table for the rows that were committed since the last poll, by any replica. A row has the time when its statement
// began and is visible when it is committed, so each poll goes back as far as a statement can take and leaves out the rows
// that it found before. Reading on from the last time or id would lose rows that commit late.

import { type RawBuilder, sql } from 'kysely';
import { type DatabaseConnection, type Statement, TIME_FORMAT } from '../../../ledger/index.ts';
import { looseScan } from './loose-scan.queries.ts';
import { AS_OF_MANY } from './range.queries.ts';

/** Finds a row by the index of its time, which has microseconds. */
export type RowKey = {
  readonly id: string;
  readonly at: string;
  /** Of a packed row, how many of its first rows are left out. */
  readonly skipped: number;
};

export type PollResult<Row> = {
  readonly rows: readonly Row[];
  /** How many more there were. A lower bound. */
  readonly leftOut: number;
  /** The time of the first of those. */
  readonly since: string | undefined;
};

export type NewRows = {
  /**
   * Passes the keys of the newest ones to `read`, oldest first. If it rejects, the next poll finds these rows again. The
   * first poll finds none: it notes which rows are there.
   */
  readonly poll: <Row>(
    read: (keys: readonly RowKey[]) => Promise<readonly Row[]>,
  ) => Promise<PollResult<Row>>;
};

export type NewRowsOf = {
  readonly table: 'deliveries' | 'publications';
  /** The first column of the index on time and id. */
  readonly time: 'received_at' | 'published_at';
  /** There is no such index, but one on source and time. */
  readonly bySource?: true;
  /** A table whose rows hold many rows each (ListSpec.packed), and an array with one value of each. It has the same index. */
  readonly packed?: { readonly table: 'publication_batches'; readonly array: 'durations_ms' };
};

/** Ids of the last seconds that a poll reads: all of them at the rates of one machine. 200 bytes each in memory. */
const IDS_MAX = 20_000;

/** Since when a poll reads. Its parameters: the time of the last poll or null, the seconds before it, and IDS_MAX. */
const SINCE = sql`(coalesce($1::timestamptz, now()) - make_interval(secs => $2))`;
/**
 * No new row is younger, and the partitions of the days behind it are not looked at. The sources are those of whole days, since a
 * loose scan would read on where a row is too old.
 */
const UNTIL = sql`date_trunc('day', now(), 'UTC') + interval '2 days'`;

function pollOf({ table, time, bySource, packed }: NewRowsOf): RawBuilder<unknown> {
  const newest = (from: string, count: RawBuilder<unknown>) => {
    const at = sql.ref(`t.${time}`);
    const rows = sql`
      select t.id, ${at} as time, ${count} as count from ${sql.table(from)} t ${bySource ? AS_OF_MANY : sql``}
      where ${at} >= ${SINCE}`;
    // Those of the same time are ordered at the end.
    const first = sql`order by ${at} desc fetch first ($3) rows with ties`;
    if (!bySource) return sql`(${rows} ${first})`;
    const sources = looseScan(
      from,
      'source',
      sql`${at} >= date_trunc('day', ${SINCE}, 'UTC') and ${at} < ${UNTIL}`,
    );
    return sql`(
      select t.* from (${sources}) k (source)
      cross join lateral (${rows} and ${at} < ${UNTIL} and t.source = k.source ${first}) t)`;
  };
  const both = [
    newest(table, sql`1`),
    ...(packed ? [newest(packed.table, sql`cardinality(${sql.ref(packed.array)})`)] : []),
  ];
  const format = sql.raw(TIME_FORMAT);
  return sql`
select asked.at as asked_at, found.id::text as id, to_char(found.time at time zone 'UTC', ${format}) as at, found.count
from (select to_char(now() at time zone 'UTC', ${format}) as at) as asked
left join lateral (
  select * from (${sql.join(both, sql` union all `)}) as rows order by time desc, id desc limit $3
) as found on true`;
}

type Found = { asked_at: string } & Record<'id' | 'at', string | null> & { count: number | null };

export function createNewRows(options: {
  connection: DatabaseConnection;
  of: NewRowsOf;
  /** Longer than any statement that adds rows takes to commit. */
  lateMs: number;
  /** The most rows that one poll gives: the newest. */
  rowsMax: number;
}): NewRows {
  const { connection, lateMs, rowsMax } = options;
  const statement: Statement = {
    name: `new-${options.of.table}`,
    text: pollOf(options.of).compile(connection.db).sql,
  };
  let askedAt: string | null = null;
  const seen = new Map<string, string>(); // ids and their times

  async function poll<Row>(
    read: (keys: readonly RowKey[]) => Promise<readonly Row[]>,
  ): Promise<PollResult<Row>> {
    const found = await connection.execute<Found>(statement, [askedAt, lateMs / 1_000, IDS_MAX]);
    const unseen = found.flatMap(({ id, at, count }) =>
      id === null || at === null || count === null || seen.has(id) ? [] : [{ id, at, count }],
    );
    const { keys, leftOut } = askedAt === null ? { keys: [], leftOut: 0 } : newestOf(unseen, rowsMax);
    const rows = keys.length > 0 ? await read(keys.toReversed()) : [];
    for (const { id, at } of unseen) seen.set(id, at);
    forgetBefore(askedAt);
    const [{ asked_at: now } = { asked_at: '' }] = found;
    if (askedAt === null || now > askedAt) askedAt = now; // the clock of another server may be behind
    return { rows, leftOut, since: leftOut > 0 ? unseen.at(-1)?.at : undefined };
  }

  /** No later poll goes back further than this one did. */
  function forgetBefore(time: string | null): void {
    if (time === null) return;
    const oldestMs = Date.parse(time) - lateMs;
    for (const [id, at] of seen) if (Date.parse(at) < oldestMs) seen.delete(id);
  }

  return { poll };
}

/** The keys of the newest rows, at most `rowsMax`, and how many rows are older. `found`: newest first. */
function newestOf(
  found: readonly { readonly id: string; readonly at: string; readonly count: number }[],
  rowsMax: number,
): { keys: RowKey[]; leftOut: number } {
  const keys: RowKey[] = [];
  let room = rowsMax;
  let leftOut = 0;
  for (const { id, at, count } of found) {
    const skipped = Math.max(0, count - room);
    if (skipped < count) keys.push({ id, at, skipped });
    room -= count - skipped;
    leftOut += skipped;
  }
  return { keys, leftOut };
}
