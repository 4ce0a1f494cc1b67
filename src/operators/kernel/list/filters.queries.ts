// How a filter of the API becomes SQL. Each list has a table of its filters (deliveryTable in deliveries/queries.ts, and so on),
// made of the functions in this file. A filter is a condition on any row, and the path to its rows if an index serves it.

import { type RawBuilder, sql } from 'kysely';
import type { z } from 'zod';
import type { AccessPath, Condition } from './access-path.queries.ts';
import { looseScan } from './loose-scan.queries.ts';

export type Filter = { readonly condition: Condition; readonly path?: AccessPath };

/** The parsed filters of a list, with the sources that the caller may see (null: all) instead of one source. */
export type Scoped<Shape extends z.ZodRawShape> = Omit<z.output<z.ZodObject<Shape>>, 'source'> & {
  readonly sources: readonly string[] | null;
};

/**
 * A function for each filter of a list. It gives none if another filter covers it. The order matters to replays, which take
 * the first path: the one with the fewest rows, as a rule. `from` and `to` are missing, since they bound every statement.
 */
export type FilterTable<Asked> = {
  readonly [Name in Exclude<keyof Asked, 'from' | 'to'>]-?: (
    value: Asked[Name] & ({} | null),
    asked: Asked,
  ) => Filter | undefined;
};

/** The filters that are asked for, in the order of the table. */
export function filtersOf<Asked>(table: FilterTable<Asked>, asked: Asked): Filter[] {
  return (Object.keys(table) as (keyof FilterTable<Asked>)[]).flatMap((name) => {
    const value = asked[name];
    return value === undefined ? [] : (table[name](value, asked) ?? []);
  });
}

/** The rows of a prefix with more of them are found by another path. */
const PREFIX_ROWS_MAX = 5_000;

/** The end of the range of ids with a prefix, in the order of bytes: U+10FFFF is above any character of an id. */
const prefixEnd = (prefix: string): string => `${prefix}\u{10FFFF}`;

export function hasPrefix(column: string, prefix: string): Condition {
  const value = sql.ref(column);
  return sql`${value} >= ${prefix} and ${value} < ${prefixEnd(prefix)}`;
}

export function statusOf(kind: 'progress' | 'completed' | 'failed'): 'processing' | 'completed' | 'failed' {
  return kind === 'progress' ? 'processing' : kind;
}

/**
 * By an index on the column that goes on in the order of the list. `only` is the predicate of a partial index, and `usual` are
 * the values that it leaves out, to save a write for nearly every delivery. Rows with a usual value are frequent: the path to
 * the whole list leads to them soon.
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

/** By a partial index in the order of the list. The condition is its predicate, or implies it. */
export const byPartialIndex = (condition: Condition): Filter => ({ condition, path: { only: condition } });

/** By an index on the source that goes on in the order of the list. `sources`: null for all. */
export function bySources(sources: readonly string[] | null): Filter | undefined {
  if (sources === null) return undefined;
  const keys = sql`select unnest(${sources}::text[])`;
  return { condition: isOf(sources), path: { lead: { columns: ['source'], keys, count: sources.length } } };
}

const isOf = (sources: readonly string[] | null): Condition =>
  sources === null ? sql`true` : sql`t.source = any(${sources}::text[])`;

/** A query for the sources: those that are given, or (null) all that the table has rows of. */
export const sourcesIn = (table: string, sources: readonly string[] | null): RawBuilder<unknown> =>
  sources === null ? looseScan(table, 'source') : sql`select unnest(${sources}::text[]) collate "C"`;

/**
 * To all rows of a table with an index on the source that goes on in the order of the list. `only`: those that meet this condition.
 */
export const byAllSources = (table: string, only?: Condition): AccessPath => ({
  lead: { columns: ['source'], keys: looseScan(table, 'source', only), count: null },
  ...(only && { only }),
});

type OfSources = { readonly sources: readonly string[] | null };
type OfJobs = OfSources & {
  readonly job_id?: string | undefined;
  readonly job_id_prefix?: string | undefined;
};

/**
 * By an index on source and job. `rows`: it goes on in the order of the list, or a job has few rows in this table. Covers the
 * sources, too.
 */
function byJob(
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

/** By an index on source and job, if at most PREFIX_ROWS_MAX rows have the prefix. */
function byJobPrefix(table: string, prefix: string, { sources }: OfSources): Filter {
  const condition = hasPrefix('t.job_id', prefix);
  const keys = sourcesIn(table, sources);
  // In the order of the index, so that the planner does not read the whole table.
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

/**
 * The filters by source and job of a list with an index on both, and one on the source. A job leads to its rows by itself, so
 * a prefix or the sources beside it need no index.
 */
export const sourcesAndJobs = (table: string, rows: 'in order' | 'few'): FilterTable<OfJobs> => ({
  job_id: (jobId, { sources }) => byJob(table, jobId, { sources, rows }),
  job_id_prefix: (prefix, { sources, job_id }) =>
    job_id === undefined
      ? byJobPrefix(table, prefix, { sources })
      : { condition: hasPrefix('t.job_id', prefix) },
  sources: (sources, { job_id }) => (job_id === undefined ? bySources(sources) : undefined),
});
