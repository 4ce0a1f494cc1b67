// The list of deliveries in quarantine: those that wait for an operator, and those that one has decided on.

import { sql } from 'kysely';
import { IN_QUARANTINE } from '../../ledger/index.ts';
import {
  type AuditedDelivery,
  byStatus,
  deliverySpec,
  ofSourcesAndJobs,
  toDelivery,
} from '../deliveries/queries.ts';
import type { Condition } from '../kernel/list/access-path.queries.ts';
import { byPartialIndex, type FilterTable, filtersOf, type Scoped } from '../kernel/list/filters.queries.ts';
import { createList, type List, questionOf } from '../kernel/list/list.queries.ts';
import type { QuarantineState, quarantineFilters } from './contract.ts';

export type QuarantineFilters = Scoped<typeof quarantineFilters>;

/** The predicates of the indexes deliveries_quarantine, deliveries_released_time and deliveries_discarded. */
export const QUARANTINE_STATES: Readonly<Record<QuarantineState, Condition>> = {
  waiting: IN_QUARANTINE,
  released: sql`t.outcome = 'quarantined' and t.released_at is not null`,
  discarded: sql`t.outcome = 'quarantined' and t.discarded_at is not null`,
};

/** Where the filters of `quarantine` become SQL, and by which index. */
const quarantineTable: FilterTable<QuarantineFilters> = {
  ...ofSourcesAndJobs,
  state: (state) => byPartialIndex(QUARANTINE_STATES[state]),
  status: byStatus,
  reason: (reason) => ({ condition: sql`t.reason = ${reason}` }),
};

/** The condition on deliveries `t` that wait for an operator. Index deliveries_quarantine. */
export const IS_WAITING = QUARANTINE_STATES.waiting;

/** The conditions of these filters on deliveries `t`, without those on their time. */
export const quarantineConditions = (asked: Omit<QuarantineFilters, 'state' | 'from' | 'to'>): Condition[] =>
  filtersOf(quarantineTable, asked).map(({ condition }) => condition);

/** On deliveries `t`. */
export const receivedBetween = ({ from, to }: Pick<QuarantineFilters, 'from' | 'to'>): Condition[] => [
  ...(from === undefined ? [] : [sql`t.received_at >= ${from}::timestamptz`]),
  ...(to === undefined ? [] : [sql`t.received_at < ${to}::timestamptz`]),
];

/** The deliveries that wait for an operator, or that an operator has released or discarded. */
export const quarantine: List<QuarantineFilters, AuditedDelivery> = createList(deliverySpec, {
  toQuestion: ({ state = 'waiting', ...asked }) => questionOf(quarantineTable)({ state, ...asked }),
  toItem: toDelivery,
});
