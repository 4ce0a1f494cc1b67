// The list of incidents. There are few: each condition has one open at most, and those that ended age (upkeep/retention.ts of the ledger).

import { sql } from 'kysely';
import type { Scoped, Filter, FilterTable } from '../kernel/list/filters.queries.ts';
import { filtersOf } from '../kernel/list/filters.queries.ts';
import { createList, type List } from '../kernel/list/list.queries.ts';
import type { ListSpec } from '../kernel/list/range.queries.ts';
import { shownColumns } from '../kernel/list/shown-columns.queries.ts';
import type { Incident, incidentFilters } from './contract.ts';

export type IncidentFilters = Scoped<typeof incidentFilters>;
type Row = Omit<Incident, 'events_waited'> & { readonly events_waited: string };

/** By incidents_time. */
const spec: ListSpec<Row> = {
  table: 'incidents',
  row: sql`t.*`,
  columns: shownColumns<Row>({
    id: 'column',
    condition: 'column',
    subject: sql`nullif(t.subject, '')`,
    severity: 'column',
    state: sql`case when t.ended_at is null then 'open' else 'ended' end`,
    summary: 'column',
    began_at: 'time',
    ended_at: 'time',
    events_waited: 'column',
    decided_by: 'column',
  }),
  time: 'began_at',
  ties: [{ column: 'id', type: 'uuid' }],
};

const where = (column: 'condition' | 'severity', value: string): Filter => ({
  condition: sql`${sql.ref(`t.${column}`)} = ${value}`,
});

const incidentTable: FilterTable<IncidentFilters> = {
  // The open ones by incidents_open: they are few, and may stand behind many that began later.
  state: (state) =>
    state === 'open'
      ? { condition: IS_OPEN, path: { only: IS_OPEN, sorted: { by: ['condition', 'subject'] } } }
      : { condition: sql`t.ended_at is not null` },
  condition: (condition) => where('condition', condition),
  severity: (severity) => where('severity', severity),
  sources: (sources) =>
    sources === null ? undefined : { condition: sql`t.subject = any(${sources}::text[])` },
};

const IS_OPEN = sql`t.ended_at is null`;

export const incidents: List<IncidentFilters, Incident> = createList(spec, {
  // What went on at `from` counts, whenever it began.
  toQuestion: ({ from, to, ...asked }) => ({
    from: undefined,
    to,
    filters: [
      ...filtersOf(incidentTable, asked),
      ...(from === undefined
        ? []
        : [{ condition: sql`(t.ended_at is null or t.ended_at >= ${from}::timestamptz)` }]),
    ],
  }),
  toItem: ({ events_waited: waited, ...incident }) => ({ ...incident, events_waited: Number(waited) }),
});
