// Writes the operator log: who looked at what, and who changed what. Rows are only added: a trigger of the database refuses
// to change or delete one.

import { type Kysely, sql } from 'kysely';
import type { Database } from '../../../ledger/index.ts';

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
