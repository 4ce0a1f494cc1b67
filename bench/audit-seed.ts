// Fills a ledger with a month of history for the operators' lists: deliveries of every outcome, their events, jobs and
// publications, and an outbox with all states. By SQL, with the indexes made after the rows. Apart from the clock, the rows are
// the same every time: SEEDED says which values are rare, which are common, and which lie in one part of the month.
//
// Deliveries come in groups of 20 (group `b`, place `r`): 16 events of 8 jobs, then repeats, and one refused delivery.

import type { QueryResultRow } from 'pg';

const HISTORY_DAYS = 30;
const GROUP = 20;
const EVENTS_OF_GROUP = 16;
const JOBS_OF_GROUP = 8;

/** Values in the rows, for the requests that filter by them. */
export const SEEDED = {
  /** Six of ten deliveries, three of ten, one in a thousand, and a source that sent in the first minutes only. */
  sources: { common: 'default', second: 'studio', rare: 'rare', oldest: 'tiny' },
  /** The one until ten days ago, and the one since. */
  secrets: { old: 'aaaaaaaaaaaaaaaa', present: 'bbbbbbbbbbbbbbbb' },
  addresses: { common: '10.0.0.1', rare: '192.0.2.7' },
  errorCodes: { common: 'INVALID_INPUT', rare: 'DISK_FULL' },
  /** Of nearly all jobs, of one in 65,536, and of one in fifty, all in the oldest third. */
  prefixes: { common: 'job_', narrow: 'job_00a7', oldest: 'batch-' },
} as const;

const b = `(g / ${GROUP})`;
const r = `(g % ${GROUP})`;
/** The place of a delivery's event among its group's; null for a delivery without an event. */
const PLACE = `case when ${r} < 16 then ${r} when ${r} < 19 then (${r} - 16) * 2 + 1
  when ${b} % 10 in (0, 1, 2, 3, 4, 5) or ${b} % 100 = 6 then null else 7 end`;
const OUTCOME = `case when ${r} < 16 then 'accepted' when ${r} < 18 then 'duplicate'
  when ${r} = 18 then case when ${b} % 2 = 0 then 'conflict' else 'duplicate' end
  when ${b} % 10 = 0 then 'quarantined' when ${b} % 10 < 5 then 'unauthorized' when ${b} % 10 = 5 then 'refused'
  when ${b} % 100 = 6 then 'malformed' else 'duplicate' end`;
const SOURCE = `case when ${b} < 3 then 'tiny' when ${b} % 1000 = 77 then 'rare' when ${b} % 100 < 60 then 'default'
  when ${b} % 100 < 90 then 'studio' else 'archive' end`;
/** When delivery `g` of `n` came: spread over the month that ended a minute ago. */
const at = (n: number) =>
  `now() - interval '1 minute' - interval '${HISTORY_DAYS - 1} days' * (1 - g::float8 / ${n})`;
const uuidOf = (g: string) =>
  `(lpad(to_hex(${g}), 8, '0') || '-0000-7000-8000-' || lpad(to_hex(${g}), 12, '0'))::uuid`;
const jobId = (j: string, n: number) =>
  `case when ${j} % 17 = 3 and ${j} < ${Math.round((n / GROUP) * JOBS_OF_GROUP * 0.33)} then 'batch-' else 'job_' end
   || substr(md5((${j})::text), 1, 16)`;

/** The status at place `p` of job `j`: progress, then an end. One job of 200 never ends, and one of 50 fails. */
const STATUS = `case when p % 2 = 0 or j % 200 = 7 then 'processing' when j % 50 = 0 then 'failed' else 'completed' end`;
const PERCENT = `case when p % 2 = 0 then 45 when j % 200 = 7 then 90 end::smallint`;
const ERROR = `case when p % 2 = 1 and j % 50 = 0 and j % 200 <> 7 then
  case when j % 10000 = 0 then 'DISK_FULL' when j % 3 = 0 then 'TIMEOUT' else 'INVALID_INPUT' end end`;

const deliveries = (n: number, { from, to }: Range) => `
  insert into deliveries
    (id, received_at, source, outcome, http_status, reason, job_id, status, progress_percentage, event_sequence, path,
     remote_address, headers, secret_fingerprint, body_bytes, error_code)
  select ${uuidOf('g')}, ${at(n)}, ${SOURCE}, outcome,
    case outcome when 'accepted' then 202 when 'quarantined' then 202 when 'unauthorized' then 401
      when 'refused' then 413 when 'malformed' then 400 else 200 end,
    case when outcome = 'quarantined' then 'unknown status' end,
    case when p is not null or outcome = 'quarantined' then ${jobId('j', n)} end,
    case when outcome = 'quarantined' then 'exploded' when p is not null then ${STATUS} end,
    case when p is not null then ${PERCENT} end,
    case when p is not null then ${b} * ${EVENTS_OF_GROUP} + p + 1 end,
    '/webhooks',
    case when g % 5003 = 1 then '192.0.2.7' when outcome in ('unauthorized', 'refused') then '198.51.100.' || g % 250
      else '10.0.0.' || 1 + g % 3 end,
    '{}',
    case when outcome in ('unauthorized', 'refused') then null
      when g < ${Math.round((n * (HISTORY_DAYS - 10)) / HISTORY_DAYS)} then 'aaaaaaaaaaaaaaaa' else 'bbbbbbbbbbbbbbbb' end,
    400, case when p is not null and outcome in ('accepted', 'conflict') then ${ERROR} end
  from (
    select g, ${OUTCOME} as outcome, ${PLACE} as p, ${b} * ${JOBS_OF_GROUP} + coalesce(${PLACE}, 0) / 2 as j
    from generate_series(${from}, ${to}) g
  ) delivery`;

/** The number of its delivery is `g`. */
const eventSeries = ({ from, to }: Range) => `(
    select g, ${r} as p, ${b} * ${JOBS_OF_GROUP} + ${r} / 2 as j, ${b} * ${EVENTS_OF_GROUP} + ${r} + 1 as sequence
    from generate_series(${from}, ${to}) g where ${r} < ${EVENTS_OF_GROUP}
  ) event`;

const events = (n: number, range: Range) => `
  insert into events
    (sequence, source, job_id, status, progress_percentage, late, occurred_at, recorded_at, delivery_id, content_hash,
     repeats, error_code)
  overriding system value
  select sequence, ${SOURCE}, ${jobId('j', n)}, ${STATUS}, ${PERCENT}, j % 5000 = 11 and p % 2 = 0,
    case when ${STATUS} <> 'processing' then ${at(n)} end, ${at(n)}, ${uuidOf('g')}, '\\x00', 0, ${ERROR}
  from ${eventSeries(range)}`;

const RESULT = `case when j % 1000 = 5 then 'nacked' when j % 5000 = 6 then 'returned' else 'confirmed' end`;
const RELAY = `'00000000-0000-4000-8000-000000000001'::uuid`;

/** A third has rows of its own, as after a long outage of the broker. */
const SHARES_ROW = `${RESULT} = 'confirmed' and ${b} % 3 <> 0`;

const publications = (n: number, range: Range) => `
  insert into publications (published_at, event_sequence, attempt, result, detail, duration_ms, relay_attempt, relay_id, source)
  select ${at(n)} + interval '20 ms', sequence, 1, ${RESULT},
    case when j % 1000 = 5 then 'the broker refused it' end, 3, 0, ${RELAY}, ${SOURCE}
  from ${eventSeries(range)} where not (${SHARES_ROW})`;

/** Half of them as a relay settles them at a high rate, a group at once, and half as it does at a low one. */
const publicationBatches = (n: number, range: Range) => `
  insert into publication_batches (published_at, relay_id, source, first, sequences, durations_ms)
  select max(at), ${RELAY}, source, min(sequence), array_agg(sequence order by sequence), array_agg(3)
  from (
    select ${at(n)} + interval '20 ms' as at, ${b} as b, sequence, ${SOURCE} as source from ${eventSeries(range)}
    where ${SHARES_ROW}
  ) settled
  group by b, source, sequence >> 10, case when b % 2 = 0 then sequence end`;

const jobs = (n: number, range: Range) => `
  insert into jobs (source, job_id, first_seen_at, last_seen_at, highest_progress, completed_at, failed_at, last_status)
  select ${SOURCE}, ${jobId('j', n)}, ${at(n)}, ${at(n)} + interval '2 seconds',
    case when j % 200 = 7 then 90 else 45 end,
    case when j % 200 <> 7 and j % 50 <> 0 then ${at(n)} + interval '2 seconds' end,
    case when j % 200 <> 7 and j % 50 = 0 then ${at(n)} + interval '2 seconds' end,
    case when j % 200 = 7 then 'processing' when j % 50 = 0 then 'failed' else 'completed' end
  from ${eventSeries(range)} where p % 2 = 0`;

/** Entries of the newest events: most are pending, some returned, few parked. Each has a time, and so a batch, of its own. */
const outbox = (entries: number) => [
  `insert into outbox_batches (first, sequences, bytes, recorded_at)
   select sequence, array[sequence], 400, recorded_at from ${newestEvents(entries)}
   where sequence % 50 <> 0 and sequence % 500 <> 1`,
  `insert into outbox_held (sequence, source, job_id, status, progress_percentage, late, recorded_at, data, state, attempts)
   select sequence, source, job_id, status, progress_percentage, late, recorded_at, '{}',
     case when sequence % 50 = 0 then 'returned' else 'parked' end, case when sequence % 50 = 0 then 0 else 20 end
   from ${newestEvents(entries)} where sequence % 50 = 0 or sequence % 500 = 1`,
  'vacuum (analyze) outbox_batches, outbox_held',
];
const newestEvents = (count: number) => `(select * from events order by sequence desc limit ${count}) newest`;

type Range = { readonly from: number; readonly to: number };
/** Runs the statements one after another on one connection. Returns the rows of the last one. */
type Session = <Row extends QueryResultRow>(statements: readonly string[]) => Promise<Row[]>;

type Index = { table: string; index: string; constraint: string | null; definition: string };

const FAST = ['set synchronous_commit = off', "set work_mem = '128MB'", "set maintenance_work_mem = '256MB'"];
const TABLES = ['deliveries', 'events', 'jobs', 'publications', 'publication_batches'] as const;

/**
 * Fills the empty, migrated ledger with `count` deliveries (a multiple of 20) and what belongs to them, in two sessions at once.
 * Without `logged` it takes a third less time, but the tables are not vacuumed and do not survive a crash.
 */
export async function seedHistory(
  session: Session,
  { count, waiting = 20_000, logged = true }: { count: number; waiting?: number; logged?: boolean },
): Promise<void> {
  const indexes = await dropIndexes(session);
  await session([...partitionsOfThePast(), ...(logged ? [] : [WITHOUT_WAL])]);
  const all = { from: 0, to: count - 1 };
  await Promise.all([
    session([...FAST, deliveries(count, all)]),
    session([
      ...FAST,
      ...[events, jobs, publications, publicationBatches].map((rows) => rows(count, all)),
      `select setval(pg_get_serial_sequence('events', 'sequence'), (select max(sequence) from events))`,
    ]),
  ]);
  // Before the indexes are made again: a vacuum would have to read these, too.
  await share(
    session,
    TABLES.map((table) => [`${logged ? 'vacuum (analyze)' : 'analyze'} ${table}`]),
  );
  // Postgres invents the names of a partition's indexes: two sessions at one table may choose the same name.
  await share(
    session,
    TABLES.map((table) => indexes.get(table) ?? []),
  );
  await session([...FAST, ...outbox(waiting)]);
}

/** Divides the groups of statements among two sessions, one for each core. */
async function share(session: Session, groups: readonly (readonly string[])[]): Promise<void> {
  const left = [...groups];
  const work = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) await session([...FAST, ...next]);
  };
  await Promise.all([work(), work()]);
}

/** Drops all but the primary keys. @returns for each table the statements that make its indexes again */
async function dropIndexes(session: Session): Promise<Map<string, string[]>> {
  const found = await session<Index>([
    `
    select t.relname as table, i.relname as index, c.conname as constraint,
      coalesce(pg_get_constraintdef(c.oid), replace(pg_get_indexdef(i.oid), ' ON ONLY ', ' ON ')) as definition
    from pg_index x join pg_class i on i.oid = x.indexrelid join pg_class t on t.oid = x.indrelid
      left join pg_constraint c on c.conindid = i.oid and c.contype = 'u'
    where t.relname in (${TABLES.map((table) => `'${table}'`).join(', ')}) and not x.indisprimary`,
  ]);
  const made = new Map<string, string[]>(TABLES.map((table) => [table, []]));
  await session(
    found.map(({ table, index, constraint, definition }) => {
      if (constraint === null) {
        made.get(table)?.push(definition);
        return `drop index ${index}`;
      }
      made.get(table)?.push(`alter table ${table} add constraint ${constraint} ${definition}`);
      return `alter table ${table} drop constraint ${constraint}`;
    }),
  );
  return made;
}

const WITHOUT_WAL = `
  do $$
  declare name text;
  begin
    for name in select c.relname from pg_class c where c.relkind = 'r' and
      c.relname ~ '^(events|jobs|(deliveries|publications|publication_batches)_\\d+)$' order by 1
    loop
      execute format('alter table %I set unlogged', name);
    end loop;
  end $$`;

/** The service itself makes those of the coming days. */
export function partitionsOfThePast(): string[] {
  return ['deliveries', 'publications', 'publication_batches'].map(
    (parent) => `
    do $$
    declare day date; name text;
    begin
      for n in 0..${HISTORY_DAYS} loop
        day := (now() at time zone 'UTC')::date - n;
        name := '${parent}' || to_char(day, '_YYYYMMDD');
        if to_regclass(name) is null then
          execute format('create table %I partition of ${parent} for values from (%L) to (%L)', name,
            day || ' 00:00:00+00', day + 1 || ' 00:00:00+00');
        end if;
      end loop;
    end $$`,
  );
}
