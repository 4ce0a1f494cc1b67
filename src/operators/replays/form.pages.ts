// What the form of a new replay holds, in its address and when it is sent: an order of the API, field by field.

import { type SameAs, sameAs } from '../kernel/console/same-as.ts';
import { filtersIn } from '../kernel/list/filter-form.pages.ts';
import { withUnits } from '../kernel/list/list.pages.ts';
import { InputError } from '../kernel/operation/input-faults.ts';
import { type ReplayOrder, replayEventFilters } from './order.contract.ts';

/** Half of what a server takes as the head of a request. A longer form is sent as one. */
export const ADDRESS_MAX = 4_000;

export type ReplayForm = {
  /** As they were typed. */
  readonly values: Readonly<Record<string, string>>;
  readonly eventIds: readonly string[];
  readonly queue: string | undefined;
  readonly rate: string | undefined;
  readonly note: string | undefined;
};

export function readReplayForm(fields: URLSearchParams): ReplayForm {
  const text = (name: string) => fields.get(name)?.trim() || undefined;
  const lines = fields.getAll('event_ids').flatMap((ids) => ids.split('\n'));
  return {
    values: filtersIn(fields, replayEventFilters),
    eventIds: [...new Set(lines.map((line) => line.trim()).filter((line) => line !== ''))],
    queue: text('queue'),
    rate: text('rate_per_second'),
    note: text('note'),
  };
}

export const namesEvents = ({ values, eventIds }: ReplayForm): boolean =>
  eventIds.length > 0 || Object.keys(values).length > 0;

const BOTH = new InputError([
  { name: 'event_ids', message: 'leave this empty, or the filters: a replay takes one of the two' },
]);

/** The operation checks it. @throws InputError for a time that cannot be read, and for ids beside filters */
export function orderOf(form: ReplayForm): Partial<ReplayOrder> {
  const { eventIds, queue, rate, note } = form;
  const { late, ...filter } = withUnits(form.values, replayEventFilters);
  const wanted = { ...filter, ...(late !== undefined && { late: late === 'true' }) };
  if (eventIds.length > 0 && Object.keys(wanted).length > 0) throw BOTH;
  return {
    ...(eventIds.length > 0 && { event_ids: [...eventIds] }),
    ...(Object.keys(wanted).length > 0 && { filter: wanted }),
    ...(queue !== undefined && { queue }),
    // What is no number is refused by the operation, which says why.
    ...(rate !== undefined && { rate_per_second: /^\d{1,6}$/.test(rate) ? Number(rate) : (rate as never) }),
    ...(note !== undefined && { note }),
  };
}

/** The fields of a form that orders the same. */
export const fieldsOf = (
  { values, eventIds, queue, rate, note }: ReplayForm,
  filter: Readonly<Record<string, unknown>> | undefined,
): Readonly<Record<string, string | undefined>> => ({
  ...(filter === undefined
    ? values
    : Object.fromEntries(Object.entries(filter).map(([name, value]) => [name, String(value)]))),
  event_ids: eventIds.join('\n'),
  queue,
  rate_per_second: rate,
  note,
});

export function sameReplay(origin: string, form: ReplayForm, order: Partial<ReplayOrder>): SameAs {
  return sameAs(origin, {
    command: [
      'replay',
      ...form.eventIds,
      ...option('--rate', form.rate),
      ...option('--note', form.note),
      '--dry-run',
    ],
    path: '/replays',
    query: { ...form.values, queue: form.queue },
    body: { ...order, dry_run: true },
  });
}

const option = (name: string, value: string | undefined) => (value === undefined ? [] : [name, value]);
