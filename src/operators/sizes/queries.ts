// Sizes of the tables, and what a day adds: from Postgres' catalog, from the sizes of files, and from the counts of answers. So the
// cost depends on the number of partitions, and not on what is in them.

import { type Kysely, sql } from 'kysely';
import { type Database, KEPT, readParts, type SizedPart as Part, TABLES } from '../../ledger/index.ts';
import type { Sizes, TableSize } from './contract.ts';

/** A week, since weekends differ from other days. */
const DAYS_MEASURED_MAX = 7;

type Growth = { readonly rows: number; readonly bytes: number };

export async function readSizes(
  db: Kysely<Database>,
  { retentionDays }: { readonly retentionDays: number },
): Promise<Sizes> {
  const parts = await readParts(db);
  const days = daysMeasured(parts);
  const events = days === 0 ? 0 : (await readAccepted(db, days)) / days;
  const tables = TABLES.map((table) => sizeOf(parts.filter((part) => part.table === table)));
  const perEvent = growthForGood(tables, events);
  const items = tables
    .map((size): TableSize => {
      const growth = days === 0 ? undefined : (perEvent(size) ?? growthOf(parts, size, days));
      const hasDays = growth !== undefined && size.days !== null;
      return {
        ...size,
        a_day: growth === undefined ? null : rounded(growth),
        bytes_at_retention: hasDays ? Math.round(growth.bytes * (retentionDays + 1)) : null,
      };
    })
    .toSorted((a, b) => b.bytes - a.bytes);
  return {
    retention_days: retentionDays,
    days_measured: days,
    database_bytes: await readDatabaseBytes(db),
    all_tables: allOf(items, days > 0),
    items,
  };
}

async function readDatabaseBytes(db: Kysely<Database>): Promise<number> {
  const { rows } = await sql<{ bytes: number }>`
    select pg_database_size(current_database())::float8 as bytes`.execute(db);
  return rows[0]?.bytes ?? 0;
}

/** Deliveries that became events on the last `days` whole days. Reads one range of the primary key of each table of counts. */
async function readAccepted(db: Kysely<Database>, days: number): Promise<number> {
  const today = sql`(date_trunc('day', now() at time zone 'UTC') at time zone 'UTC')`;
  const begin = sql`${today} - make_interval(days => ${days})`;
  const { rows } = await sql<{ accepted: number }>`
    select coalesce(sum(count), 0)::float8 as accepted from (
      select count from rollups
      where minute >= ${begin} and minute < ${today} and measure = 'answer' and result = 'accepted'
      union all
      select count from rollups_hourly
      where hour >= ${begin} and hour < ${today} and measure = 'answer' and result = 'accepted'
    ) as counts`.execute(db);
  return rows[0]?.accepted ?? 0;
}

/** From the first of the last days that has deliveries to yesterday: the days before it had no service. */
const daysMeasured = (parts: readonly Part[]): number =>
  Math.max(
    0,
    ...parts
      .filter(
        ({ table, age, bytes }) =>
          table === 'deliveries' && isMeasured(age, DAYS_MEASURED_MAX) && bytes > EMPTY_BYTES,
      )
      .map(({ age }) => age ?? 0),
  );

/** The index of an empty TOAST table has a page, and the partition counts it. */
const EMPTY_BYTES = 8_192;

const isMeasured = (age: number | null, days: number) => age !== null && age >= 1 && age <= days;

type Size = Omit<TableSize, 'a_day' | 'bytes_at_retention'>;

function sizeOf(parts: readonly Part[]): Size {
  const table = parts[0]?.table ?? 'deliveries';
  const indexBytes = sum(parts, ({ indexBytes: bytes }) => bytes);
  return {
    table,
    days: parts.some(({ age }) => age !== null) ? parts.length : null,
    rows: sum(parts, ({ rows }) => rows),
    bytes: sum(parts, ({ bytes }) => bytes) + indexBytes,
    index_bytes: indexBytes,
    kept: KEPT[table],
  };
}

/** Of a table with days. */
function growthOf(parts: readonly Part[], { table, days }: Size, measured: number): Growth | undefined {
  if (days === null) return undefined;
  const whole = parts.filter((part) => part.table === table && isMeasured(part.age, measured));
  return {
    rows: sum(whole, ({ rows }) => rows) / measured,
    bytes: sum(whole, ({ bytes, indexBytes }) => bytes + indexBytes) / measured,
  };
}

/** Of events and jobs: their rows and bytes for an event up to now, times the events of a day. */
function growthForGood(tables: readonly Size[], eventsADay: number): (size: Size) => Growth | undefined {
  const events = tables.find(({ table }) => table === 'events')?.rows ?? 0;
  const share = events === 0 ? 0 : eventsADay / events;
  return ({ table, rows, bytes }) =>
    table === 'events' || table === 'jobs' ? { rows: rows * share, bytes: bytes * share } : undefined;
}

function allOf(items: readonly TableSize[], isMeasuredYet: boolean): Sizes['all_tables'] {
  const growth = (some: (item: TableSize) => boolean) =>
    isMeasuredYet ? sum(items.filter(some), ({ a_day: day }) => day?.bytes ?? 0) : null;
  return {
    bytes: sum(items, ({ bytes }) => bytes),
    a_day_bytes: growth(() => true),
    for_good_a_day_bytes: growth(({ kept }) => kept === 'for_good'),
    bytes_at_retention: isMeasuredYet ? sum(items, ({ bytes_at_retention: bytes }) => bytes ?? 0) : null,
  };
}

const rounded = ({ rows, bytes }: Growth): Growth => ({ rows: Math.round(rows), bytes: Math.round(bytes) });

const sum = <T>(items: readonly T[], of: (item: T) => number): number =>
  items.reduce((total, item) => total + of(item), 0);
