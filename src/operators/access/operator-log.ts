// The operator log: who looked at what, and who changed what. Append-only: the database itself rejects any change of a row.

import { type Kysely, sql } from 'kysely';
import { parseJson } from '../../json.ts';
import { type Database, timeText } from '../../ledger/index.ts';

/** Who acted. `tokenId` is null for the command line, which works on the database itself. */
export type Actor = {
  readonly tokenId: string | null;
  readonly name: string;
  readonly role: string;
  readonly remoteAddress: string | null;
};

/** What was done. `detail` is shown as it is: no secrets. */
export type LogEntry = {
  readonly action: string;
  readonly source?: string | null;
  readonly subject?: string | null;
  readonly detail?: object | null;
};

/** In the caller's transaction if `db` is one. */
export async function appendToLog(db: Kysely<Database>, actor: Actor, entry: LogEntry): Promise<void> {
  await appendAllToLog(db, actor, [entry]);
}

/** In one statement and in this order. As four arrays, since Postgres takes at most 65,535 parameters. */
export async function appendAllToLog(
  db: Kysely<Database>,
  actor: Actor,
  entries: readonly LogEntry[],
): Promise<void> {
  if (entries.length === 0) return;
  const column = (value: (entry: LogEntry) => string | null | undefined) =>
    sql`${entries.map((entry) => value(entry) ?? null)}::text[]`;
  const { tokenId, name, role, remoteAddress } = actor;
  await sql`
    insert into operator_log (token_id, actor, role, remote_address, action, source, subject, detail)
    select ${tokenId}, ${name}, ${role}, ${remoteAddress}, e.action, e.source, e.subject, e.detail
    from unnest(
      ${column(({ action }) => action)}, ${column(({ source }) => source)}, ${column(({ subject }) => subject)},
      ${column(({ detail }) => detail && JSON.stringify(detail))}
    ) with ordinality as e (action, source, subject, detail, place)
    order by e.place`.execute(db);
}

export type LogFilter = {
  readonly actor?: string | undefined;
  readonly token_id?: string | undefined;
  readonly action?: string | undefined;
  readonly subject?: string | undefined;
  readonly source?: string | undefined;
  /** RFC 3339: not before, and before. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
};

/** A line as it is shown: times as text with all of their microseconds. */
export type LogLine = {
  readonly id: string;
  readonly at: string;
  readonly actor: string;
  readonly token_id: string | null;
  readonly role: string;
  readonly action: string;
  readonly source: string | null;
  readonly subject: string | null;
  readonly detail: object | null;
  readonly remote_address: string | null;
};

/** Where the page before ended: the newest lines come first. */
export type LogPosition = { readonly at: string; readonly id: string };

/** Each filter has an index of its own that ends in (at, id), the order of the list. */
export async function readLog(
  db: Kysely<Database>,
  filter: LogFilter,
  { limit, after }: { limit: number; after: LogPosition | undefined },
): Promise<LogLine[]> {
  let lines = db
    .selectFrom('operator_log')
    .select(['id', 'actor', 'token_id', 'role', 'action', 'source', 'subject', 'detail', 'remote_address'])
    .select(timeText('operator_log.at').as('at'))
    .orderBy('operator_log.at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit);
  for (const name of ['actor', 'token_id', 'action', 'subject', 'source'] as const) {
    const wanted = filter[name];
    if (wanted !== undefined) lines = lines.where(name, '=', wanted);
  }
  if (filter.from !== undefined) lines = lines.where('operator_log.at', '>=', sql<Date>`${filter.from}`);
  if (filter.to !== undefined) lines = lines.where('operator_log.at', '<', sql<Date>`${filter.to}`);
  if (after !== undefined) {
    lines = lines.where(
      sql<boolean>`(operator_log.at, id) < (${after.at}::timestamptz, ${after.id}::bigint)`,
    );
  }
  const rows = await lines.execute();
  return rows.map((row) => ({
    ...row,
    detail: row.detail === null ? null : (parseJson(row.detail) as object),
  }));
}
