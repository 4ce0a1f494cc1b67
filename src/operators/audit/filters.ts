// The filters that lists share, each with the index that serves it.

import { sql } from 'kysely';
import { type Filter, type Question } from './lists.ts';
import type { Access, Condition } from './scan.ts';

/** A prefix that leads to more rows is not selective: its rows are found by time. */
const PREFIX_ROWS_MAX = 5_000;

/** Ids hold no character as great as the last: all that begin with `prefix` are below, in the order of bytes. */
export const prefixEnd = (prefix: string): string => `${prefix}\u{10FFFF}`;

export type Kind = 'progress' | 'completed' | 'failed';

export function statusOf(kind: Kind | undefined): string | undefined {
  return kind === 'progress' ? 'processing' : kind;
}

/** By a column that has an index in the order of the list (see the migrations). */
export function byColumn(
  column: string,
  value: string | undefined,
  options: { type?: 'uuid'; only?: Condition } = {},
): Filter[] {
  if (value === undefined) return [];
  const condition = sql`${sql.ref(`t.${column}`)} = ${value}`;
  return [{ condition, access: { by: 'column', column, values: [value], ...options } }];
}

/**
 * By a column whose usual values are in no index, since each would cost every delivery: rows with one of these are met
 * at once in the order of the list. `only`: what the index holds.
 */
export function byUnusual(
  column: string,
  value: string | undefined,
  { usual, only }: { usual: readonly string[]; only: Condition },
): Filter[] {
  if (value === undefined || !usual.includes(value)) return byColumn(column, value, { only });
  return [{ condition: sql`${sql.ref(`t.${column}`)} = ${value}` }];
}

/** `sources`: those that may be seen; null for all. */
export function bySources(sources: readonly string[] | null): Filter[] {
  if (sources === null) return [];
  const condition = sql`t.source = any(${sources}::text[])`;
  return [{ condition, access: { by: 'column', column: 'source', values: sources } }];
}

export type JobFilters = {
  readonly sources: readonly string[] | null;
  readonly job_id?: string | undefined;
  readonly job_id_prefix?: string | undefined;
};

/**
 * Rows of the sources and of the job or jobs, by an index on both; `by time` if it goes on with the time of the list, since
 * a job may have many rows.
 */
export function bySourcesAndJob(
  { job_id, job_id_prefix, sources }: JobFilters,
  rows: 'by time' | 'few',
): Pick<Question, 'filters' | 'sure' | 'maybe'> {
  const prefixed =
    job_id_prefix === undefined
      ? undefined
      : sql`t.job_id >= ${job_id_prefix} and t.job_id < ${prefixEnd(job_id_prefix)}`;
  if (job_id !== undefined) {
    const sure: Access =
      rows === 'by time'
        ? { by: 'job', jobId: job_id, sources }
        : { by: 'few', condition: sql`t.job_id = ${job_id}`, sources };
    return { sure, filters: prefixed === undefined ? [] : [{ condition: prefixed }] };
  }
  if (prefixed === undefined) return { filters: bySources(sources) };
  const access = { by: 'few', condition: prefixed, sources } as const;
  return { maybe: { access, condition: prefixed, atMost: PREFIX_ROWS_MAX }, filters: bySources(sources) };
}
