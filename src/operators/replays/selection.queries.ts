// Which events a replay is for: named by their ids, or by a filter as in the list of events. As conditions of SQL; what is done
// with them stands elsewhere.

import { type Expression, type SqlBool, sql } from 'kysely';
import type { z } from 'zod';
import type { deliveryFilters } from '../deliveries/contract.ts';
import type { eventFilters } from '../events/contract.ts';
import { type EventFilters, eventTable } from '../events/queries.ts';
import type { Condition } from '../kernel/list/access-path.queries.ts';
import { bySources, type Filter, type FilterTable, filtersOf } from '../kernel/list/filters.queries.ts';
import { looseScan } from '../kernel/list/loose-scan.queries.ts';

type DeliveryFilter = z.output<z.ZodObject<typeof deliveryFilters>>;
type OfDelivery = Pick<DeliveryFilter, 'secret_fingerprint' | 'remote_address'>;

/** As the API has it, since it is stored and shown as it was sent. At least one of them is given. */
export type EventFilter = z.output<z.ZodObject<typeof eventFilters>> & OfDelivery;

/** As it is stored in `replays.selection`. `sequences` are those of the ids, in ascending order. */
export type Selection =
  | { readonly event_ids: readonly string[]; readonly sequences: readonly string[] }
  | { readonly filter: EventFilter };

/** The filters of the list of events, and those of an event's delivery. */
const replayTable: FilterTable<EventFilters & OfDelivery> = {
  ...eventTable,
  secret_fingerprint: (_, asked) => byDelivery(asked),
  remote_address: (_, asked) => (asked.secret_fingerprint === undefined ? byDelivery(asked) : undefined),
};

/**
 * An event's delivery has the event's time, and is found by the primary key in one partition. A released one is older: it is
 * found by index deliveries_released, which has no others; the subquery is hashed once.
 */
function byDelivery({ secret_fingerprint: secret, remote_address: address }: OfDelivery): Filter {
  const wanted = [
    ...(secret === undefined ? [] : [sql`d.secret_fingerprint = ${secret}`]),
    ...(address === undefined ? [] : [sql`d.remote_address = ${address}`]),
  ];
  const condition = sql.join(wanted, sql` and `);
  return {
    condition: sql`(
      exists (
        select from deliveries d
        where d.id = t.delivery_id and d.received_at = t.recorded_at and ${condition}
      )
      or (t.sequence, t.delivery_id) in (
        select d.event_sequence, d.id from deliveries d where d.released_at is not null and ${condition}
      )
    )`,
  };
}

/** The selection as filters of the list of events. `sources`: only events of these; null for all. */
export function filtersIn(selection: Selection, sources: readonly string[] | null): Filter[] {
  if ('sequences' in selection) {
    const condition = sql`t.sequence = any(${[...selection.sequences]}::bigint[])`;
    const named = { condition, path: { only: condition, sorted: { by: ['sequence'] } } };
    const within = bySources(sources);
    return within === undefined ? [named] : [named, within];
  }
  const { source, ...filter } = selection.filter;
  const within = source === undefined ? sources : (sources?.filter((name) => name === source) ?? [source]);
  return filtersOf(replayTable, { ...filter, sources: within });
}

/** The conditions on `events as t`. `sources`: only events of these; null for all. */
export function selected(selection: Selection, sources: readonly string[] | null): Expression<SqlBool> {
  const conditions = filtersIn(selection, sources).map(({ condition }) => condition);
  conditions.push(...timesOf(selection));
  if ('filter' in selection) {
    const { source, job_id, job_id_prefix } = selection.filter;
    // For events_dedup_key, which begins with the source, to serve a job without one.
    if (source === undefined && sources === null && (job_id ?? job_id_prefix) !== undefined)
      conditions.push(sql`t.source in (${looseScan('jobs', 'source')})`);
  }
  return sql<SqlBool>`(${sql.join(conditions, sql` and `)})`;
}

/** The conditions on the time of `events as t`. */
export function timesOf(selection: Selection): Condition[] {
  const { from, to } = 'filter' in selection ? selection.filter : {};
  return [
    ...(from === undefined ? [] : [sql`t.recorded_at >= ${from}::timestamptz`]),
    ...(to === undefined ? [] : [sql`t.recorded_at < ${to}::timestamptz`]),
  ];
}
