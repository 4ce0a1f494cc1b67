// A client of the operators' API. Answers are checked, errors are typed (errors.ts), and limits are honoured
// (transport.ts). Every action takes an Idempotency-Key, by which the service recognizes a repeated request.

import { z } from 'zod';
import { PAGE_LIMIT_MAX } from '../contract/filters.ts';
import type { ListName, LISTS } from '../contract/lists.ts';
import type { liveFilters } from '../contract/live.ts';
import type { outboxGroupFilters, quarantineGroupFilters } from '../contract/groups.ts';
import type { DiscardEntriesOrder, RetryOrder } from '../contract/outbox-orders.ts';
import type { DiscardOrder, ReleaseOrder } from '../contract/quarantine.ts';
import type { ReplayOrder as ContractReplayOrder } from '../contract/replay-order.ts';
import { STORY_ITEMS_DEFAULT } from '../contract/story.ts';
import { answers, type Items, items } from './answers.ts';
import type { HttpClientOptions, Query } from '../../http-client.ts';
import { pages } from '../../pages.ts';
import type { Lenient } from './lenient.ts';
import { readEvents, type ServerSentEvent } from './server-sent-events.ts';
import { createTransport } from './transport.ts';

export { ApiAnswerError, InvalidAnswerError, NoAnswerError } from './errors.ts';

/** Values are sent unchecked: the API checks them. */
type QueryOf<Filters> = { readonly [Name in keyof Filters]?: Query[string] };
/** The filters of a list. */
export type ListQuery<N extends ListName> = QueryOf<(typeof LISTS)[N]['filters']>;
export type LiveQuery = QueryOf<typeof liveFilters>;
export type ReplayOrder = Omit<Lenient<ContractReplayOrder>, 'dry_run'>;

/** Which entries or deliveries an order is about. */
type Which<Order> = Pick<Order, Extract<keyof Order, 'ids' | 'filter' | 'state' | 'source'>>;

type LiveEvents = AsyncGenerator<ServerSentEvent, void, undefined>;

export type CallOptions = { readonly signal?: AbortSignal | undefined };

export type OperatorsClient = ReturnType<typeof createOperatorsClient>;

/** @throws TypeError for a base URL or token that cannot be used; it quotes neither. */
export function createOperatorsClient(options: HttpClientOptions) {
  const { json, stream, open } = createTransport(options);
  const get = <T>(path: string, schema: z.ZodType<T>, query?: Query, { signal }: CallOptions = {}) =>
    json({ method: 'GET', path, ...(query && { query }), signal }, schema);
  const act = <T>(path: string, schema: z.ZodType<T>, idempotencyKey: string, body?: unknown) =>
    json({ method: 'POST', path, idempotencyKey, ...(body !== undefined && { body }) }, schema);

  /** The items of a list, at most `max` of them. A page is read when its first item is asked for. */
  async function* each<N extends ListName>(
    name: N,
    query: ListQuery<N> = {},
    { max = Number.POSITIVE_INFINITY, signal }: CallOptions & { readonly max?: number } = {},
  ): AsyncGenerator<Items[N], void, undefined> {
    const schema = z.object({ items: z.array(items[name]), next_cursor: z.string().nullable() });
    let left = max;
    for await (const page of pages((cursor) =>
      get(`/${name}`, schema, { ...query, limit: Math.min(PAGE_LIMIT_MAX, left), cursor }, { signal }),
    )) {
      yield* page.items.slice(0, left);
      left -= page.items.length;
      if (left <= 0) return;
    }
  }

  return {
    each,

    /** A job's story, oldest first, page by page. Each page also has the job: null if all its deliveries are in quarantine. */
    story: (source: string, jobId: string, callOptions: CallOptions = {}) =>
      pages((cursor) => {
        const page = { limit: STORY_ITEMS_DEFAULT, cursor };
        return isDotSegment(jobId)
          ? get('/story', answers.story, { source, job_id: jobId, ...page }, callOptions)
          : get(`/jobs/${part(source)}/${part(jobId)}`, answers.story, page, callOptions);
      }),

    delivery: (id: string, callOptions: CallOptions = {}) =>
      get(`/deliveries/${part(id)}`, answers.delivery, {}, callOptions),
    /** Byte for byte as it came. The operator log records that it was read. */
    deliveryBody: (id: string, { signal }: CallOptions = {}) =>
      stream({
        method: 'GET',
        path: `/deliveries/${part(id)}/body`,
        accept: 'application/octet-stream',
        signal,
      }),
    /** How a conflicting delivery differs from its event. The operator log records that both bodies were read. */
    difference: (id: string) => get(`/deliveries/${part(id)}/difference`, answers.difference),
    event: (id: string) => get(`/events/${part(id)}`, answers.event),
    /** The operator log records that a body was read. */
    cloudEvent: (id: string) => get(`/events/${part(id)}/cloudevent`, answers.cloudEvent),
    outboxCounts: (query: ListQuery<'outbox'> = {}) =>
      get('/outbox', answers.outboxCounts, { ...query, limit: 1 }),
    stats: (query: Query) => get('/stats', answers.stats, query),
    sources: async () => (await get('/sources', answers.sources)).items,
    replicas: async () => (await get('/replicas', answers.replicas)).items,

    /** What an id, an error code, a source or the begin of a job's id leads to. */
    search: (text: string) => get('/search', answers.search, { q: text }),

    /** A whole list as NDJSON or CSV. The operator log records it. */
    exportList: (query: Query, { signal }: CallOptions = {}) =>
      stream({ method: 'GET', path: '/export', query, accept: '*/*', signal }),
    /** Deliveries and publications as they happen, until the signal is aborted or the connection is lost. */
    live: (query: LiveQuery, { signal }: CallOptions = {}): LiveEvents =>
      readEvents(stream(liveCall(query, signal))),
    /** As `live`, but resolves when the service listens: none of what happens from then on is missed. */
    openLive: async (query: LiveQuery, { signal }: { readonly signal: AbortSignal }): Promise<LiveEvents> =>
      readEvents(await open(liveCall(query, signal))),

    replay: (id: string, callOptions: CallOptions = {}) =>
      get(`/replays/${part(id)}`, answers.replayDetail, {}, callOptions),
    tryReplay: (order: ReplayOrder, key: string) =>
      act('/replays', answers.replayPreview, key, { ...order, dry_run: true }),
    createReplay: (order: ReplayOrder, key: string) => act('/replays', items.replays, key, order),
    steerReplay: (id: string, action: 'pause' | 'resume' | 'cancel', key: string) =>
      act(`/replays/${part(id)}/${action}`, items.replays, key),

    /** Of the console: the open ones. */
    sessions: async () => (await get('/sessions', answers.sessions)).items,
    endSession: (id: string, key: string) => act(`/sessions/${part(id)}/end`, answers.endedSession, key),
    /** For `/console/sign-in?code=…`. A repeated request gets no code. */
    signInCode: (key: string) => act('/sign-in-codes', answers.signInCode, key),

    release: (deliveryId: string, key: string) =>
      act(`/quarantine/${part(deliveryId)}/release`, answers.release, key),
    tryRelease: (which: Which<ReleaseOrder>, key: string) =>
      act('/quarantine/release', answers.quarantinePreview, key, { ...which, dry_run: true }),
    /** Releases many, page by page: each page is an action of its own. */
    releaseMany: (which: Which<ReleaseOrder>, nextKey: () => string) =>
      pages((cursor) => act('/quarantine/release', answers.releases, nextKey(), { ...which, cursor })),

    discard: (deliveryId: string, note: string, key: string) =>
      act(`/quarantine/${part(deliveryId)}/discard`, items.quarantine, key, { note }),
    tryDiscard: (which: Which<DiscardOrder>, key: string) =>
      act('/quarantine/discard', answers.quarantinePreview, key, { ...which, dry_run: true }),
    /** Discards many, page by page: each page is an action of its own. */
    discardMany: (order: Which<DiscardOrder> & { readonly note: string }, nextKey: () => string) =>
      pages((cursor) => act('/quarantine/discard', answers.discards, nextKey(), { ...order, cursor })),
    quarantineGroups: (query: QueryOf<typeof quarantineGroupFilters>) =>
      get('/quarantine/groups', answers.quarantineGroups, query),

    /** `id`: the entry's own digits, or an event's id. */
    decide: (id: string, action: 'retry' | 'discard' | 'park', key: string) =>
      act(`/outbox/${part(id)}/${action}`, items.outbox, key),
    tryDecide: (action: 'retry' | 'discard', which: Which<DiscardEntriesOrder>, key: string) =>
      act(`/outbox/${action}`, answers.outboxPreview, key, { ...which, dry_run: true }),
    /** Retries many, page by page: each page is an action of its own. */
    retryMany: (which: Which<RetryOrder>, nextKey: () => string) =>
      pages((cursor) => act('/outbox/retry', answers.retried, nextKey(), { ...which, cursor })),
    /** Discards many, page by page: each page is an action of its own. */
    discardEntries: (which: Which<DiscardEntriesOrder>, nextKey: () => string) =>
      pages((cursor) => act('/outbox/discard', answers.discardedEntries, nextKey(), { ...which, cursor })),
    outboxGroups: (query: QueryOf<typeof outboxGroupFilters>) =>
      get('/outbox/groups', answers.outboxGroups, query),
  };
}

const liveCall = (query: LiveQuery, signal: AbortSignal | undefined) =>
  ({ method: 'GET', path: '/live', query, accept: 'text/event-stream', signal }) as const;

const part = encodeURIComponent;

/** `fetch` takes these out of a path, even percent-encoded. */
const isDotSegment = (text: string) => text === '.' || text === '..';
