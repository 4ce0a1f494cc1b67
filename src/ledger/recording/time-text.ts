// Times as operators see them: RFC 3339 in UTC, with the microseconds that Postgres keeps and a Date loses.

import { type RawBuilder, sql } from 'kysely';

/** The format for to_char, as SQL. */
export const TIME_FORMAT = `'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'`;

/** A timestamptz column as text; null stays null. */
export const timeText = (column: string): RawBuilder<string> =>
  sql`to_char(${sql.ref(column)} at time zone 'UTC', ${sql.raw(TIME_FORMAT)})`;
