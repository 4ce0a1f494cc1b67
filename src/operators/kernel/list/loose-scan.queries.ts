// A loose index scan: the different values of an index's first column, each found by one step in the index. Postgres
// has no plan for this and would read all rows.

import { type RawBuilder, sql } from 'kysely';

/**
 * A query for the values of `column` in ascending order, without null. Needs an index that begins with it. `within`: only in rows `t`
 * that meet this condition. Nearly all should: each step reads on to the next one that does.
 *
 * Example: of a million deliveries of the sources a, b and c it reads four rows: the first one, the first one above a,
 * the first one above b, and that there is none above c.
 */
export function looseScan(
  table: string,
  column: string,
  within: RawBuilder<unknown> = sql`true`,
): RawBuilder<unknown> {
  const value = sql.ref(`t.${column}`);
  const first = (condition: RawBuilder<unknown>) =>
    sql`select ${value} from ${sql.table(table)} t where ${condition} order by ${value} limit 1`;
  return sql`
    with recursive known (value) as (
      (${first(within)})
      union all
      select (${first(sql`${value} > known.value and ${within}`)}) from known where known.value is not null
    )
    select value from known where value is not null`;
}
