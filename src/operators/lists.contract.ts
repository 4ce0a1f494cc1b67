// The lists by their names: their items, filters and pages, and their texts in the API's document. The API, its client and
// the command line all take the lists from here.

import type { z } from 'zod';
import { Delivery, deliveryColumns, deliveryFilters } from './deliveries/contract.ts';
import { Event, eventColumns, eventFilters } from './events/contract.ts';
import { Incident, incidentColumns, incidentFilters } from './incidents/contract.ts';
import { Job, jobColumns, jobFilters } from './jobs/contract.ts';
import type { ListColumns } from './kernel/list/columns.contract.ts';
import { page } from './kernel/list/fields.contract.ts';
import type { FilterForm, Filters } from './kernel/list/filters.contract.ts';
import { liveFilters } from './live/contract.ts';
import { LogLine, logColumns, logFilters } from './operator-log/contract.ts';
import { Entry, entryColumns, OutboxPage, outboxFilters } from './outbox/contract.ts';
import { Publication, publicationColumns, publicationFilters } from './publications/contract.ts';
import { quarantineColumns, quarantineFilters } from './quarantine/contract.ts';
import { Replay, replayColumns, replayFilters } from './replays/contract.ts';

export type ListContract = {
  readonly item: z.ZodObject;
  readonly columns: ListColumns<never>;
  readonly filters: Filters;
  readonly page: z.ZodObject;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
};

export const LISTS = {
  jobs: {
    item: Job,
    columns: jobColumns,
    filters: jobFilters,
    page: page(Job).meta({ id: 'JobPage', description: 'A page of jobs.' }),
    tag: 'Jobs',
    summary: 'Jobs, the newest first',
    description: '`state=stuck`: jobs without an end that were first seen longer ago than `stuck_after`.',
  },
  deliveries: {
    item: Delivery,
    columns: deliveryColumns,
    filters: deliveryFilters,
    page: page(Delivery).meta({ id: 'DeliveryPage', description: 'A page of deliveries.' }),
    tag: 'Deliveries',
    summary: 'Deliveries, the newest first',
  },
  events: {
    item: Event,
    columns: eventColumns,
    filters: eventFilters,
    page: page(Event).meta({ id: 'EventPage', description: 'A page of events.' }),
    tag: 'Events',
    summary: 'Events, the newest first',
  },
  publications: {
    item: Publication,
    columns: publicationColumns,
    filters: publicationFilters,
    page: page(Publication).meta({ id: 'PublicationPage', description: 'A page of attempts to publish.' }),
    tag: 'Publications',
    summary: 'Attempts to publish, the newest first',
  },
  quarantine: {
    item: Delivery,
    columns: quarantineColumns,
    filters: quarantineFilters,
    page: page(Delivery).meta({ id: 'QuarantinePage', description: 'A page of quarantined deliveries.' }),
    tag: 'Quarantine',
    summary: 'Authentic deliveries that we could not understand, the newest first',
    description: 'Those that wait for an operator; with `state` those that were released or discarded.',
  },
  outbox: {
    item: Entry,
    columns: entryColumns,
    filters: outboxFilters,
    page: OutboxPage,
    tag: 'Outbox',
    summary: 'What is still to be published, the oldest first',
  },
  incidents: {
    item: Incident,
    columns: incidentColumns,
    filters: incidentFilters,
    page: page(Incident).meta({ id: 'IncidentPage', description: 'A page of incidents.' }),
    tag: 'Incidents',
    summary: 'Incidents, by their start, the newest first',
    description:
      'Of a token that is limited to some sources, those of its sources: what concerns all is for tokens without a limit.',
  },
  'operator-log': {
    item: LogLine,
    columns: logColumns,
    filters: logFilters,
    page: page(LogLine).meta({ id: 'LogPage', description: 'A page of the operator log.' }),
    tag: 'Operator log',
    summary: 'What operators looked at and changed, newest first',
    description: 'For tokens that are not limited to some sources.',
  },
  replays: {
    item: Replay,
    columns: replayColumns,
    filters: replayFilters,
    page: page(Replay).meta({ id: 'ReplayPage', description: 'A page of replays.' }),
    tag: 'Replays',
    summary: 'Replays, newest first',
  },
} as const satisfies Record<string, ListContract>;

export type ListName = keyof typeof LISTS;

const { replays: _replays, ...EXPORTED } = LISTS;
export type ExportedList = keyof typeof EXPORTED;
/** All but the replays, which are few. */
export const EXPORTED_LISTS = Object.keys(EXPORTED) as ExportedList[];

/** Those whose export may have the bodies of deliveries. */
export const LISTS_WITH_BODIES = ['deliveries', 'quarantine'] as const satisfies readonly ExportedList[];

const ALL_FILTERS = [...Object.values(LISTS).map(({ filters }): Filters => filters), liveFilters];

/** How people meet a parameter of the API, by its name; none if it is no filter. The same name has one form in all lists. */
export const FORMS: ReadonlyMap<string, FilterForm> = new Map(
  ALL_FILTERS.flatMap((filters) => Object.entries(filters).map(([name, { form }]) => [name, form] as const)),
);
