// What each session with Postgres must be, whatever the server, the database, the role or a pooler say: all that our reading of
// values and our promises depend on. One statement sets it and reads it back, once for each connection. Never start-up
// parameters: poolers refuse or drop them. docs/servers.md has the same names, with the reasons for a reader.

import { SchemaError, SessionError } from '../../base/errors.ts';

export type SessionOptions = {
  readonly statementTimeoutMs: number;
  readonly lockTimeoutMs: number;
  /** See READING. The default makes Postgres use the index that a statement was written for. */
  readonly reading?: keyof typeof READING | undefined;
  /** See WRITING. */
  readonly writing?: keyof typeof WRITING | undefined;
  /** See PLANS. */
  readonly plans?: keyof typeof PLANS | undefined;
  /** It only reads, or its writes may fail: it is used on a read-only database, too. */
  readonly mayBeReadOnly?: boolean | undefined;
  /** What it needs besides, or instead of what all have. */
  readonly besides?: Settings | undefined;
  /** Of the connection string's `options`: set before ours. */
  readonly own?: Settings | undefined;
};

/** Names and values, as `show` writes them. */
export type Settings = Readonly<Record<string, string>>;

/** None of our transactions is idle for this long unless its process is frozen. */
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 10_000;

/** The same for every session, unless it says otherwise itself. */
const ALWAYS: Settings = {
  // What decides how values and statements are read.
  DateStyle: 'ISO, MDY', // pg parses no other
  IntervalStyle: 'postgres',
  TimeZone: 'UTC', // partitions are days of UTC
  bytea_output: 'hex',
  standard_conforming_strings: 'on',
  array_nulls: 'on',
  transform_null_equals: 'off',
  extra_float_digits: '1',
  client_encoding: 'UTF8',
  // What decides how long, and with what, they run.
  idle_in_transaction_session_timeout: duration(IDLE_IN_TRANSACTION_TIMEOUT_MS),
  idle_session_timeout: '0', // a connection that the relay keeps open means something
  default_transaction_isolation: 'read committed',
  default_transaction_deferrable: 'off',
  // A cancelled wait for a standby is told by a warning alone (statements.ts).
  client_min_messages: 'warning',
  // Compiling our short statements takes longer (8 ms measured) than running them (2 ms).
  jit: 'off',
};

/** Of versions that know it. */
const WHERE_KNOWN: Settings = { transaction_timeout: '0' }; // since Postgres 17

/**
 * A client that vanished ends its session after 9 s: three probes, two seconds apart, after three seconds of silence; or when what
 * was sent stays without an acknowledgement for as long. Not through a Unix socket, where nobody can vanish.
 */
const TCP: Settings = {
  tcp_keepalives_idle: '3',
  tcp_keepalives_interval: '2',
  tcp_keepalives_count: '3',
  tcp_user_timeout: '9000',
};

const WRITING = {
  durable: {}, // `synchronous_commit` at least on
  // For what is done again if it is not there: a commit does not wait for the disk, nor delay the next one there. A crash of
  // Postgres undoes the last moments (three times wal_writer_delay: 0.6 s), unless a durable commit came after them.
  repeatable: { synchronous_commit: 'off' },
} as const satisfies Record<string, Settings>;

const PLANS = {
  // For statements without a name, which are planned each time: with their values Postgres leaves out the days that they exclude.
  'for its values': { plan_cache_mode: 'auto' },
  // For statements with names, each written for one index whatever its values. Postgres would plan each five times on every new
  // connection before it kept a plan, and anew for each length of a list: a load takes 25 ms to plan, and 1 ms to run. Not for the
  // statement that records: a plan for large batches is another one than for small ones (docs/performance.md).
  once: { plan_cache_mode: 'force_generic_plan' },
} as const satisfies Record<string, Settings>;

/**
 * Each statement is written for one index. With statistics from a time when the outbox was empty, the planner would prefer a
 * scan and a sort: with 12,000 entries a load took 125 ms that way, and 5 ms by its index.
 */
const READING = {
  'by index': { enable_seqscan: 'off', enable_bitmapscan: 'off' },
  // No parallel workers: an operator's query must not take more than one of the server's processors from the intake. The ledger
  // is on a solid-state disk or in memory. With the default random_page_cost of 4, the planner preferred a scan and a sort of a
  // whole table to 10,000 rows by a list's index. No enable_... is off here: since Postgres 18 a plan without what is disabled
  // wins whatever it costs. A look-up of a few rows that are then sorted would read a whole table in the order of some index
  // instead.
  planned: {
    enable_seqscan: 'on',
    enable_bitmapscan: 'on',
    max_parallel_workers_per_gather: '0',
    random_page_cost: '1.1',
  },
  // As the server, the database and the role have it: for what reads whole tables.
  'as given': {},
} as const satisfies Record<string, Settings>;

/** A commit that waits for less than the disk makes a 2xx untrue. One that waits for more stays as it is. */
const DURABLE = ['on', 'remote_apply'];

/** Never set by us. What waiting cannot cure is the server's fault for good. */
const CHECKED = {
  server_encoding: { must: 'be UTF8', isFit: (value: string) => value === 'UTF8', cures: false },
  server_version_num: {
    must: 'be 150000 or more',
    isFit: (value: string) => Number(value) >= 150_000,
    cures: false,
  },
  // Without triggers the operator log could be changed.
  session_replication_role: { must: 'be origin', isFit: (value: string) => value === 'origin', cures: true },
  // A standby, or somebody's fence.
  default_transaction_read_only: { must: 'be off', isFit: (value: string) => value === 'off', cures: true },
  transaction_read_only: { must: 'be off', isFit: (value: string) => value === 'off', cures: true },
} as const;

/** Checked, and only warned of. */
const FSYNC = 'fsync';

/** All names of the contract, for its table in docs/servers.md. */
export const CONTRACT_NAMES = {
  set: [
    ...Object.keys({ ...ALWAYS, ...WHERE_KNOWN, ...TCP }),
    'statement_timeout',
    'lock_timeout',
    'synchronous_commit',
    'search_path',
    ...Object.values(WRITING).flatMap((settings) => Object.keys(settings)),
    ...Object.values(PLANS).flatMap((settings) => Object.keys(settings)),
    ...Object.values(READING).flatMap((settings) => Object.keys(settings)),
  ],
  checked: [...Object.keys(CHECKED), FSYNC],
} as const;

type Kind = 'option' | 'set' | 'where known' | 'tcp' | 'durable' | 'schema' | 'tables' | 'read';
type Line = { readonly kind: Kind; readonly name: string; readonly value: string | null };

/**
 * It sets nothing while `pg_backend_pid()` is neither $1, the process that answered the login, nor $2 says that it may: a pooler
 * answers logins itself, and might give the session to somebody else (pooler.ts). Lines are taken in their order.
 *
 * Our schema is the first on the path that has our migrations, or else the first there is. `pg_temp` comes last, so that no
 * temporary table takes the place of one of ours.
 */
const CONTRACT = `
select pg_backend_pid() as pid, case when pg_backend_pid() = $1::int or $2::boolean then (
  select json_agg(json_build_array(q.name, q.value)) from (
    select l.name, case l.kind
      when 'read' then current_setting(l.name, true)
      when 'tables' then (to_regclass('kysely_migration') is not null)::text
      when 'durable' then case when current_setting(l.name) in ('off', 'local', 'remote_write')
        then set_config(l.name, 'on', false) else current_setting(l.name) end
      when 'schema' then (
        select set_config(l.name, p.path, false) from (
          select coalesce(l.value, quote_ident(coalesce((
            select n.nspname from pg_class c join pg_namespace n on n.oid = c.relnamespace
            where c.oid = to_regclass('kysely_migration')
          ), current_schema())) || ', pg_temp') as path offset 0
        ) p where p.path is not null)
      else set_config(l.name, l.value, false) end as value
    from unnest($3::text[], $4::text[], $5::text[]) as l (kind, name, value)
    where (l.kind <> 'where known' or current_setting(l.name, true) is not null)
      and (l.kind <> 'tcp' or inet_client_addr() is not null)
    offset 0
  ) q
) end as settings`;

/** Where a setting comes from that is not as it must be. */
const SOURCE = 'select source from pg_settings where lower(name) = lower($1)';

/** One statement with its values: of a client of pg. */
export type Ask = <Row>(text: string, values: readonly unknown[]) => Promise<Row[]>;

export type Session = {
  /** Of the server's process. */
  readonly pid: number;
  /** What search_path is pinned to; undefined until our tables are there. */
  readonly path: string | undefined;
  readonly isReadOnly: boolean;
  /** The server does not wait for its disk: a crash of its machine loses what it confirmed. */
  readonly isUnsafe: boolean;
};

/**
 * Makes the session what it must be. `loginPid`: of the process that answered the login. Another one's session is left as it is unless
 * `mayBePooled`. `path`: what an earlier session was pinned to.
 * @returns the pid alone if nothing was set
 * @throws SessionError for what may change; SchemaError for what waiting cannot cure
 */
export async function agree(
  ask: Ask,
  options: SessionOptions & {
    readonly loginPid: number | null;
    readonly mayBePooled: boolean;
    readonly path: string | undefined;
  },
): Promise<Session | { readonly pid: number }> {
  const { loginPid, mayBePooled, path } = options;
  const lines = linesOf(options, path);
  const columns = [
    lines.map(({ kind }) => kind),
    lines.map(({ name }) => name),
    lines.map(({ value }) => value),
  ];
  const [row] = await ask<{ pid: number; settings: [string, string | null][] | null }>(CONTRACT, [
    loginPid,
    mayBePooled,
    ...columns,
  ]);
  if (row === undefined)
    throw new SessionError('session_unfit', 'the session gave no answer to its contract');
  if (row.settings === null) return { pid: row.pid };
  const found = new Map(row.settings);
  await check(ask, { lines, found, options });
  return {
    pid: row.pid,
    path: found.get(TABLES) === 'true' ? (found.get('search_path') ?? undefined) : undefined,
    isReadOnly: READ_ONLY.some((name) => found.get(name) !== 'off'),
    isUnsafe: found.get(FSYNC) === 'off',
  };
}

/** The name of the line that tells whether our tables are there. */
const TABLES = 'our tables';

const linesFor = (kind: Kind, settings: Settings): Line[] =>
  Object.entries(settings).map(([name, value]) => ({ kind, name, value }));

function linesOf({ own = {}, ...options }: SessionOptions, path: string | undefined): readonly Line[] {
  const { statementTimeoutMs, lockTimeoutMs, besides } = options;
  const { reading = 'by index', writing = 'durable', plans = 'for its values' } = options;
  const read = [...Object.keys(CHECKED), FSYNC];
  return [
    ...linesFor('option', own),
    ...linesFor('where known', WHERE_KNOWN),
    ...linesFor('tcp', TCP),
    ...linesFor('set', {
      ...ALWAYS,
      statement_timeout: duration(statementTimeoutMs),
      lock_timeout: duration(lockTimeoutMs),
      ...WRITING[writing],
      ...PLANS[plans],
      ...READING[reading],
      ...besides,
    }),
    ...(writing === 'durable' ? [{ kind: 'durable', name: 'synchronous_commit', value: null } as const] : []),
    { kind: 'schema', name: 'search_path', value: path ?? null },
    { kind: 'tables', name: TABLES, value: null },
    ...read.map((name) => ({ kind: 'read', name, value: null }) as const),
  ];
}

/** @throws SessionError or SchemaError for the first setting that is not as it must be, by its name and where it comes from */
async function check(
  ask: Ask,
  {
    lines,
    found,
    options,
  }: {
    lines: readonly Line[];
    found: ReadonlyMap<string, string | null>;
    options: SessionOptions;
  },
): Promise<void> {
  for (const { kind, name, value } of lines) {
    const is = found.get(name);
    if (is === undefined) continue; // this version, or this way to it, does not know it
    const fault = faultOf({ kind, name, value, is }, options);
    if (fault === undefined) continue;
    if (kind === 'schema') throw new SessionError('session_unfit', fault);
    const [row] = await ask<{ source: string }>(SOURCE, [name]);
    const from = row === undefined ? '' : ` (it comes from: ${row.source})`;
    const sentence = `${name} is ${is ?? 'unknown'}${from} and must ${fault}`;
    if (name in CHECKED && !CHECKED[name as keyof typeof CHECKED].cures)
      throw new SchemaError('server_unfit', sentence);
    throw new SessionError(READ_ONLY.includes(name) ? 'read_only' : 'session_unfit', sentence);
  }
}

/** Each refuses writes. */
const READ_ONLY: readonly string[] = ['default_transaction_read_only', 'transaction_read_only'];

/** The path is set by us at that moment, so where it comes from says nothing. */
const NO_SCHEMA =
  'no schema of search_path exists, or the role may not use one: create it, or set search_path of the role or the database';

/** What a setting must be instead; undefined if it is as it must be. */
function faultOf(
  { kind, name, value, is }: Line & { readonly is: string | null },
  { mayBeReadOnly = false }: SessionOptions,
): string | undefined {
  if (kind === 'set' || kind === 'where known' || kind === 'tcp')
    return is === value ? undefined : `be ${value}`;
  if (kind === 'durable') return is !== null && DURABLE.includes(is) ? undefined : `be on or remote_apply`;
  if (kind === 'schema') return is === null ? NO_SCHEMA : undefined;
  if (kind !== 'read' || !(name in CHECKED) || (READ_ONLY.includes(name) && mayBeReadOnly)) return undefined;
  const { must, isFit } = CHECKED[name as keyof typeof CHECKED];
  return is !== null && isFit(is) ? undefined : must;
}

/** As Postgres shows it: whole milliseconds, in the largest unit that leaves a whole number. 0 is no limit. */
function duration(exactMs: number): string {
  if (exactMs === 0) return '0';
  const ms = Math.max(1, Math.round(exactMs));
  const units = [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['min', 60_000],
    ['s', 1_000],
  ] as const;
  const [name, size] = units.find(([, each]) => ms % each === 0) ?? ['ms', 1];
  return `${ms / size}${name}`;
}
