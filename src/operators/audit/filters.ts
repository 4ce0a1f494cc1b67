// How a filter of the API becomes SQL: each list has a table of its filters, made of what stands here. A filter is a
// condition for any row, and the path to its rows where an index serves it.

import { type RawBuilder, sql } from 'kysely';
import type { z } from 'zod';
import { looseScan } from './loose-scan.ts';
import type { AccessPath, Condition } from './scan.ts';

export type Filter = { readonly condition: Condition; readonly path?: AccessPath };

/** What the contract's filters of a list ask, with the sources that may be seen (null: all) in the place of one. */
export type Scoped<Shape extends z.ZodRawShape> = Omit<z.output<z.ZodObject<Shape>>, 'source'> & {
  readonly sources: readonly string[] | null;
};

/**
 * Each filter of a list. Where one is of another's concern alone, it gives none. What leads to fewer rows stands first, as
 * a rule. The times `from` and `to` are bounds of every statement.
 */
export type FilterTable<Asked> = {
  readonly [Name in Exclude<keyof Asked, 'from' | 'to'>]-?: (
    value: Asked[Name] & ({} | null),
    asked: Asked,
  ) => Filter | undefined;
};

/** The filters that are asked, in the order of the table. */
export function filtersOf<Asked>(table: FilterTable<Asked>, asked: Asked): Filter[] {
  return (Object.keys(table) as (keyof FilterTable<Asked>)[]).flatMap((name) => {
    const value = asked[name];
    return value === undefined ? [] : (table[name](value, asked) ?? []);
  });
}

/** A prefix that leads to more rows is not selective: its rows are found by another path. */
const PREFIX_ROWS_MAX = 5_000;

/** Ids hold no character as great as the last: all that begin with `prefix` are below, in the order of bytes. */
export const prefixEnd = (prefix: string): string => `${prefix}\u{10FFFF}`;

export function hasPrefix(column: string, prefix: string): Condition {
  const value = sql.ref(column);
  return sql`${value} >= ${prefix} and ${value} < ${prefixEnd(prefix)}`;
}

export function statusOf(kind: 'progress' | 'completed' | 'failed'): 'processing' | 'completed' | 'failed' {
  return kind === 'progress' ? 'processing' : kind;
}

/**
 * By a column, with an index on it that goes on in the order of the list. `only` is the predicate of a partial index, and
 * `usual` are the values that it leaves out, since each would cost every delivery a write: rows with one of these are met
 * soon in the order of the list.
 */
export function byColumn(
  column: string,
  value: string,
  {
    type = 'text',
    only,
    usual = [],
  }: { type?: 'text' | 'uuid'; only?: Condition; usual?: readonly string[] } = {},
): Filter {
  const condition = sql`${sql.ref(`t.${column}`)} = ${value}`;
  if (usual.includes(value)) return { condition };
  const keys = sql`select ${value}::${sql.raw(type)}`;
  return { condition, path: { lead: { columns: [column], keys, count: 1 }, ...(only && { only }) } };
}

/** By the predicate of a partial index that is in the order of the list. */
export const byPartialIndex = (condition: Condition): Filter => ({ condition, path: { only: condition } });

/** By an index on the source that goes on in the order of the list. `sources`: null for all. */
export function bySources(sources: readonly string[] | null): Filter | undefined {
  if (sources === null) return undefined;
  const keys = sql`select unnest(${sources}::text[])`;
  return { condition: isOf(sources), path: { lead: { columns: ['source'], keys, count: sources.length } } };
}

const isOf = (sources: readonly string[] | null): Condition =>
  sources === null ? sql`true` : sql`t.source = any(${sources}::text[])`;

/** As a query: those that are given, or (null) all that the table has rows of. */
export const sourcesIn = (table: string, sources: readonly string[] | null): RawBuilder<unknown> =>
  sources === null ? looseScan(table, 'source') : sql`select unnest(${sources}::text[]) collate "C"`;

type OfSources = { readonly sources: readonly string[] | null };

/**
 * By an index on source and job. It goes on in the order of the list, or else a job has few rows there. Serves the sources
 * as well, so that these are no filter of their own beside it.
 */
export function byJob(
  table: string,
  jobId: string,
  { sources, rows }: OfSources & { rows: 'in order' | 'few' },
): Filter {
  const keys = sql`select s.source, ${jobId}::text collate "C" from (${sourcesIn(table, sources)}) s (source)`;
  const lead = { columns: ['source', 'job_id'], keys, count: 1 };
  return {
    condition: sql`${isOf(sources)} and t.job_id = ${jobId}`,
    path: rows === 'few' ? { lead, sorted: { by: lead.columns } } : { lead },
  };
}

/** By an index on source and job, if few rows have the prefix. */
export function byJobPrefix(table: string, prefix: string, { sources }: OfSources): Filter {
  const condition = hasPrefix('t.job_id', prefix);
  const keys = sourcesIn(table, sources);
  // From the index alone, in its order, lest the planner read the whole table.
  const rows = sql`
    select from (${keys}) k (source) cross join lateral (
      select from ${sql.table(table)} t where t.source = k.source and ${condition}
      order by t.job_id limit ${PREFIX_ROWS_MAX + 1}) t`;
  return {
    condition,
    path: {
      lead: { columns: ['source'], keys, count: 1 },
      only: condition,
      sorted: { by: ['source', 'job_id'], onlyIf: { rows, atMost: PREFIX_ROWS_MAX } },
    },
  };
}
