// The statements for events that wait to be published for the first time: a row of outbox_batches for all events of a write.
// Most of them are handed to the relay from memory (hand-off.ts) and never loaded; these loads find what other replicas wrote,
// and all that was left when a leader took over.

import {
  type DatabaseConnection,
  JOIN_DELIVERY,
  JOIN_JOB,
  joinEvent,
  type Statement,
  type WriteMark,
} from '../ledger/index.ts';
import { type Batch, createBatch } from './batch.ts';
import type { Entry } from './entry.ts';
import { BODY, EVENT_COLUMNS, type EventRow, toEntry } from './rows.ts';

export type PendingLoad = {
  /** Batches that began with this transaction or later, decimal digits; undefined for all. */
  readonly since: string | undefined;
  /** What is in memory: keys of batches that are there whole, and events of the others. */
  readonly except: { readonly batches: readonly string[]; readonly events: readonly string[] };
  /** Writes of this replica that have no answer yet: they are handed over when it comes. */
  readonly inFlight: readonly WriteMark[];
  /** Events and bytes of bodies, about; one event always. */
  readonly limit: number;
  readonly bytes: number;
};

export type Loaded = {
  /** In the order of their sequences. */
  readonly found: readonly {
    readonly entry: Entry;
    readonly mark: WriteMark | undefined;
    readonly isHeld: boolean;
  }[];
  /** The first event that may be left; undefined if all were loaded. */
  readonly bound: string | undefined;
  /** Transactions before this one had ended, so a later load need not look for their batches. */
  readonly xid: string;
  /** Of what operators and former leaders have decided (decisions.ts). */
  readonly version: string;
};

/** Batches are read in the order of their first events. Their events overlap, so more batches are read than are needed. */
const AHEAD = { batches: 100, events: 10_000 };

/**
 * The oldest events: at most `$4`, and no more once those before have `$5` bytes.
 * - `next`: the first `$6` batches; `read`: those of them that are read, with some `$7` events.
 * - `unread`: the first event of the first batch that is not read. All events before it are in those that are.
 * - `event`: these, the oldest first; `chosen`: those within the limits. `bound` is the first that is not.
 *
 * What is new is found by `xid` (R17), and whether a job is held by the same statement (R13). The number of a batch's events is
 * computed once for each batch: to look into its array costs Postgres 20 to 40 µs each time, since a long one is stored compressed.
 */
const load = (name: string, batches: string): Statement => ({
  name,
  text: `
with next as materialized (
  select b.*, row_number() over (order by first) as place,
         sum(size) over (order by first rows between unbounded preceding and 1 preceding) as events_before
  from (
    select b.*, cardinality(b.sequences) as size from ${batches} b
    where b.first <> all($1::bigint[])
      and not exists (
        select from unnest($2::bigint[], $3::int[]) as w (writer, number)
        where w.writer = b.writer and w.number = b.number)
    order by b.first limit $6::int
  ) b
),
read as materialized (
  select * from next where place < $6 and coalesce(events_before, 0) < $7::int
),
unread as materialized (
  select min(first) as first from next where place > (select count(*) from read)
),
event as materialized (
  select e.*, row_number() over (order by sequence) as place,
         sum(bytes) over (order by sequence rows between unbounded preceding and 1 preceding) as bytes_before
  from (
    select s.sequence, r.first, r.size, r.bytes / r.size as bytes, r.writer, r.number
    from read r cross join unnest(r.sequences) as s (sequence) cross join unread
    where (unread.first is null or s.sequence < unread.first) and s.sequence not in (select unnest($8::bigint[]))
    order by s.sequence limit $4::int + 1
  ) e
),
chosen as materialized (
  select * from event where place <= $4 and coalesce(bytes_before, 0) < $5::bigint
),
found as (
  select c.first, c.size, c.writer, c.number, j.is_held as "isHeld", ${EVENT_COLUMNS}, ${BODY} as body
  from chosen c
  ${joinEvent('c.sequence')}
  ${JOIN_JOB}
  ${JOIN_DELIVERY}
)
select (select version from outbox_version) as version, pg_snapshot_xmin(pg_current_snapshot())::text as xid,
       coalesce(
         (select min(sequence) from event where place > (select count(*) from chosen)), (select first from unread)
       ) as bound, found.*
from (select) as always left join found on true
order by found.sequence`,
});

export const LOAD_ALL = load('outbox-load-all', 'outbox_batches');
/** Offset 0, so that the index of `xid` is used: the other one is in the wanted order, but has all that was deleted. */
export const LOAD_NEW = load(
  'outbox-load-new',
  '(select * from outbox_batches where xid >= $9::xid8 offset 0)',
);

type Row = EventRow & {
  readonly version: string;
  readonly xid: string;
  readonly bound: string | null;
  readonly first: string | null;
  readonly size: number;
  readonly writer: string | null;
  readonly number: number | null;
  readonly isHeld: boolean;
};

type Execute = Pick<DatabaseConnection, 'execute'>;

const READ_VERSION: Statement = {
  name: 'outbox-version',
  text: 'select version from outbox_version',
};

export async function readVersion(connection: Execute): Promise<string> {
  const [row] = await connection.execute<{ version: string }>(READ_VERSION, []);
  if (row === undefined) throw new Error('the outbox has no version');
  return row.version;
}

/** Each load expects batches as large as the last one found, so that it looks at few more than it needs. */
export function createPendingLoads(connection: Execute): (options: PendingLoad) => Promise<Loaded> {
  let perBatch = 1;
  return async (options) => {
    for (let factor = 1; ; factor *= 10) {
      const loaded = toLoaded(await readRows(connection, options, { factor, perBatch }));
      const batches = new Set(loaded.found.map(({ entry }) => entry.batch)).size;
      perBatch = Math.max(1, loaded.found.length / Math.max(1, batches));
      // Of batches that overlap much, the oldest event may be in one that was not read.
      if (loaded.found.length > 0 || loaded.bound === undefined) return loaded;
    }
  };
}

/** @param ahead how far to read ahead, and how many events a batch has, about */
async function readRows(
  connection: Execute,
  options: PendingLoad,
  { factor, perBatch }: { factor: number; perBatch: number },
): Promise<Row[]> {
  const { since, except, inFlight, limit, bytes } = options;
  const values = [
    except.batches,
    inFlight.map(({ writer }) => writer),
    inFlight.map(({ number }) => number),
    limit,
    bytes,
    Math.ceil(limit / perBatch) + factor * AHEAD.batches,
    limit + factor * AHEAD.events,
    except.events,
  ];
  return since === undefined
    ? connection.execute<Row>(LOAD_ALL, values)
    : connection.execute<Row>(LOAD_NEW, [...values, since]);
}

function toLoaded(rows: readonly Row[]): Loaded {
  const [head] = rows;
  // The left side of the join is one row, whatever is found.
  if (head === undefined) throw new Error('nothing was loaded');
  const batches = new Map<string, Batch>();
  const found = rows.flatMap((row) => (row.first === null ? [] : [toFound(row, row.first, batches)]));
  const { bound, xid, version } = head;
  return { found, bound: bound ?? undefined, xid, version };
}

/** A batch is whole once all of its events are found. */
function toFound(row: Row, first: string, batches: Map<string, Batch>): Loaded['found'][number] {
  const { version: _v, xid: _x, bound: _b, first: _f, size, writer, number, isHeld, ...event } = row;
  const batch = batches.get(first) ?? createBatch(first, { size, found: 0 });
  batches.set(first, batch);
  batch.find();
  const mark = writer === null || number === null ? undefined : { writer, number };
  return { entry: { ...toEntry(event, { attempts: 0 }), batch }, mark, isHeld };
}
