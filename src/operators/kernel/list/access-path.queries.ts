// What leads to the rows of a list: an index, and which part of it.

import type { RawBuilder } from 'kysely';

/** On a row `t`. */
export type Condition = RawBuilder<unknown>;

/**
 * The part of an index that holds the wanted rows. An index may go without the columns that only order rows of the same time: each write
 * has one time, so these are few rows to sort. Examples:
 *
 * - `{}`: all of publications_time, on (published_at, id), which is the order of the list.
 * - `only`: deliveries_quarantine, on (received_at, id), which holds no other rows than those in quarantine.
 * - `lead`: for the sources a and b two parts of deliveries_source, on (source, received_at). `columns` is `source`, `keys` are a
 *   and b. The newest rows of both parts are read, and the newest of these shown.
 * - `sorted`: for a prefix of jobs' ids a part of deliveries_job, on (source, job_id, …), behind each source (`lead`). Its order
 *   is that of the ids, so the rows are read whole and sorted.
 */
export type AccessPath = {
  /**
   * The index's columns before those of the list's order, and a query for their wanted values, `count` of them. Null: that is
   * unknown, and there may be a thousand.
   */
  readonly lead?: {
    readonly columns: readonly string[];
    readonly keys: RawBuilder<unknown>;
    readonly count: number | null;
  };
  /** A condition on all rows of the part; for a partial index its predicate, as the migrations write it. */
  readonly only?: Condition;
  /**
   * A condition on packed rows (ListSpec.packed) that replaces the two above, if these are not for packed rows. The rows in
   * them must meet the two above all the same. Null if no packed row has any of the wanted ones.
   */
  readonly packed?: Condition | null;
  /** Set if the index does not go on in the order of the list. */
  readonly sorted?: {
    /** The index's own order, from its first column on. */
    readonly by: readonly string[];
    /** Set if there may be too many rows to sort: the path is taken if this query gives at most so many. */
    readonly onlyIf?: { readonly rows: RawBuilder<unknown>; readonly atMost: number };
  };
};
