// GET /live: sends deliveries and publications as they happen, as server-sent events.

import { z } from 'zod';
import { isStatus, kindOf, parseEventId } from '../../event/index.ts';
import { Delivery } from '../deliveries/contract.ts';
import { type AuditedDelivery, shownTo } from '../deliveries/queries.ts';
import { type Caller, defineRead, type Operation, scopeOf } from '../kernel/operation/operation.ts';
import { Publication } from '../publications/contract.ts';
import { liveFilters } from './contract.ts';
import type { Listeners } from './listeners.ts';
import type { Live, LiveRows } from './queries.ts';
import { frameOf } from './stream.ts';

const query = z.strictObject(liveFilters);
type Query = z.output<typeof query>;

export function createLiveOperations(deps: {
  live: Live<AuditedDelivery, Publication>;
  listeners: Listeners;
}): readonly Operation[] {
  const { live, listeners } = deps;
  const frameOfRow = createFrames();

  return [
    defineRead({
      id: 'listen',
      path: '/live',
      tag: 'Live',
      summary: 'Deliveries and publications as they happen, on all replicas',
      description:
        'Server-sent events. `event: delivery` and `event: publication` hold the same object as the lists, with its id ' +
        'as the `id`. Each comes once, about a second after its commit. `event: gap` says that some were left out: ' +
        '`{"because", "left_out", "since"}`. `too_slow`: the listener did not read in time. `too_many`: more happened in a ' +
        'second than the stream shows; then `left_out` is a lower bound, counted before any filter. Nothing is sent ' +
        'again, and Last-Event-ID is not read: read what was missed from the lists. A comment comes every 15 seconds. A ' +
        'listener that reads nothing for 60 seconds is disconnected. At most 32 may listen to a replica, and 8 with one ' +
        'token.',
      role: 'viewer',
      query,
      answers: {
        200: { description: 'Events, until the caller hangs up.', contentType: 'text/event-stream' },
      },
      run: async ({ query: wanted }, { caller }) => {
        const select = filterOf(caller, wanted); // before a place is taken, since it may throw
        const { stream, send } = listeners.admit(caller);
        const sendRows = (found: LiveRows<AuditedDelivery, Publication>) => {
          for (const { list, count, since } of found.leftOut) {
            if (wanted.events !== undefined && wanted.events !== list) continue;
            const gap = { because: 'too_many', list, left_out: count, since };
            send({ text: frameOf('gap', JSON.stringify(gap)), at: since });
          }
          for (const row of select(found)) send(frameOfRow(row));
        };
        try {
          const leave = await live.listen(sendRows);
          stream.once('close', leave);
          if (stream.destroyed) leave();
        } catch (error) {
          stream.destroy();
          throw error;
        }
        return {
          status: 200,
          contentType: 'text/event-stream; charset=utf-8',
          // Proxies must neither cache nor buffer it (X-Accel-Buffering is nginx's header).
          headers: { 'Cache-Control': 'no-store', 'X-Accel-Buffering': 'no' },
          stream,
        };
      },
    }),
  ];
}

type Row = Delivery | Publication;

const timeOf = (row: Row) => ('received_at' in row ? row.received_at : row.published_at);

/** Makes the text of each row once for all listeners. */
function createFrames(): (row: Row) => { text: string; at: string } {
  const made = new WeakMap<Row, { text: string; at: string }>();
  return (row) => {
    const known = made.get(row);
    if (known !== undefined) return known;
    const text =
      'received_at' in row
        ? frameOf('delivery', JSON.stringify(Delivery.parse(row)), row.id)
        : frameOf('publication', JSON.stringify(Publication.parse(row)), row.id);
    const frame = { text, at: timeOf(row) };
    made.set(row, frame);
    return frame;
  };
}

/** Selects the rows that this caller asks for and may see, in order of time. @throws ApiError 403 */
function filterOf(caller: Caller, wanted: Query): (found: LiveRows<AuditedDelivery, Publication>) => Row[] {
  const sources = scopeOf(caller, wanted.source);
  const isIn = (row: Row) =>
    (sources === null || sources.includes(row.source)) &&
    (wanted.job_id === undefined || wanted.job_id === row.job_id);
  const hasStatus = (status: string | null | undefined) =>
    (wanted.status === undefined || wanted.status === status) &&
    (wanted.kind === undefined || (isText(status) && isStatus(status) && kindOf(status) === wanted.kind));
  const wantsDeliveries = wanted.events !== 'publications' && wanted.result === undefined;
  const wantsPublications = wanted.events !== 'deliveries' && wanted.outcome === undefined;
  const isWantedDelivery = (row: Delivery) =>
    isIn(row) && hasStatus(row.status) && (wanted.outcome === undefined || wanted.outcome === row.outcome);
  const isWantedPublication = (row: Publication) =>
    isIn(row) &&
    hasStatus(parseEventId(row.event_id)?.status) &&
    (wanted.result === undefined || wanted.result === row.result);
  return ({ deliveries, publications }) =>
    [
      ...(wantsDeliveries
        ? deliveries.filter(isWantedDelivery).map((row) => shownTo(caller.sources, row))
        : []),
      ...(wantsPublications ? publications.filter(isWantedPublication) : []),
    ].toSorted((a, b) => (timeOf(a) < timeOf(b) ? -1 : timeOf(a) > timeOf(b) ? 1 : 0));
}

const isText = (value: string | null | undefined): value is string => typeof value === 'string';
