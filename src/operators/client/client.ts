// A client of the operators' API. Answers are checked, errors are typed (errors.ts), and limits are honoured
// (transport.ts). Every action has an Idempotency-Key, by which the service recognizes a repeated request.

import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { pages } from '../../base/net/all-pages.ts';
import type { HttpClientOptions, Query } from '../../base/net/http-client.ts';
import type { outboxGroupFilters, quarantineGroupFilters } from '../groups/contract.ts';
import { PAGE_LIMIT_MAX } from '../kernel/list/filters.contract.ts';
import type { LISTS, ListName } from '../lists.contract.ts';
import type { liveFilters } from '../live/contract.ts';
import type { OrderName, OrderOf } from '../orders.contract.ts';
import type { ReplayOrder as ContractReplayOrder } from '../replays/order.contract.ts';
import { STORY_ITEMS_DEFAULT } from '../story/contract.ts';
import { answers, type Items, items, type OrderPage, orders } from './answers.ts';
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

/** Which entries or deliveries an order is about: one of `ids` and `filter`; and the `note` of a discard of deliveries. */
export type Ordered<N extends OrderName> = Omit<OrderOf<N>, 'dry_run' | 'limit' | 'cursor'>;

type LiveEvents = AsyncGenerator<ServerSentEvent, void, undefined>;

export type CallOptions = { readonly signal?: AbortSignal | undefined };

export type OperatorsClient = ReturnType<typeof createOperatorsClient>;

/**
 * A client of the service at `url`, the operators' port, with a token of `tallyhook tokens create`. Each call throws `ApiAnswerError`
 * for a refusal (its `code` is the API's own), `NoAnswerError` if nothing answered, and `InvalidAnswerError` for an answer in
 * another form. After a lost connection, a 429 and a 503 it tries again by itself. An action takes an Idempotency-Key as its last
 * argument: give one to repeat an action in another process. Without it each call has a new one.
 * @throws TypeError for a URL or token that cannot be used; it quotes neither.
 */
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

    /** A request as it came in, with its headers and outcome. Its body is `deliveryBody`. */
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
    /** An event that was accepted, with every attempt to publish it, the newest first. */
    event: (id: string) => get(`/events/${part(id)}`, answers.event),
    /** The operator log records that a body was read. */
    cloudEvent: (id: string) => get(`/events/${part(id)}/cloudevent`, answers.cloudEvent),
    /** How many events wait to be published, how many were returned and how many are parked. */
    outboxCounts: (query: ListQuery<'outbox'> = {}, callOptions: CallOptions = {}) =>
      get('/outbox', answers.outboxCounts, { ...query, limit: 1 }, callOptions),
    /** Counts and times for each interval and source. */
    stats: (query: Query) => get('/stats', answers.stats, query),
    /** Who sends: what came from each source, and which of its secrets matched. */
    sources: async () => (await get('/sources', answers.sources)).items,
    /** The processes of the service, their versions, and which one leads the relay. */
    replicas: async () => (await get('/replicas', answers.replicas)).items,
    /** Which queues are bound to the exchange, where RabbitMQ's management API is configured; `state` says whether it answered. */
    destinations: () => get('/destinations', answers.destinations),
    /** What the tables hold now, and what a day adds. */
    sizes: () => get('/sizes', answers.sizes),

    /** How it is with each condition now, as the replica that answers can tell. `is_so` is null for what it cannot. */
    conditions: (callOptions: CallOptions = {}) => get('/conditions', answers.conditions, {}, callOptions),
    /** Sends a test message to each channel that is told of incidents. */
    testAlerts: (key = newKey()) => act('/alerts/test', answers.alertTest, key),

    /** What an id, an error code, a source or the beginning of a job's id leads to. */
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

    /** A replay: its order, and how far it is. */
    replay: (id: string, callOptions: CallOptions = {}) =>
      get(`/replays/${part(id)}`, answers.replayDetail, {}, callOptions),
    /** How many events a replay would publish again. Publishes none. */
    tryReplay: (order: ReplayOrder, key = newKey()) =>
      act('/replays', answers.replayPreview, key, { ...order, dry_run: true }),
    /** Orders events to be published again. */
    createReplay: (order: ReplayOrder, key = newKey()) => act('/replays', items.replays, key, order),
    /** Pauses, resumes or cancels a replay. */
    steerReplay: (id: string, action: 'pause' | 'resume' | 'cancel', key = newKey()) =>
      act(`/replays/${part(id)}/${action}`, items.replays, key),

    /** Of the console: the open ones. */
    sessions: async () => (await get('/sessions', answers.sessions)).items,
    /** Signs a session out of the console. */
    endSession: (id: string, key = newKey()) => act(`/sessions/${part(id)}/end`, answers.endedSession, key),
    /** For `/console/sign-in?code=…`. A repeated request gets no code. */
    signInCode: (key = newKey()) => act('/sign-in-codes', answers.signInCode, key),

    /** How many entries or deliveries `order` would begin with. Changes none. */
    tryOrder: <N extends OrderName>(name: N, ordered: Ordered<N>, key = newKey()) =>
      act(`/${name}`, orders[name].preview, key, { ...ordered, dry_run: true }),
    /**
     * Retries, discards or parks entries of the outbox, by the numbers of entries or the ids of events; releases deliveries in
     * quarantine, by the rules of now, or discards them. Page by page: each page is an action of its own.
     */
    order: <N extends OrderName>(name: N, ordered: Ordered<N>, nextKey = newKey) =>
      pages<OrderPage<N>>((cursor) => act(`/${name}`, orders[name].page, nextKey(), { ...ordered, cursor })),
    /** Deliveries in quarantine, counted by what they have in common. */
    quarantineGroups: (query: QueryOf<typeof quarantineGroupFilters>) =>
      get('/quarantine/groups', answers.quarantineGroups, query),

    /** Entries of the outbox, counted by what they have in common. */
    outboxGroups: (query: QueryOf<typeof outboxGroupFilters>) =>
      get('/outbox/groups', answers.outboxGroups, query),
  };
}

const newKey = (): string => randomUUID();

const liveCall = (query: LiveQuery, signal: AbortSignal | undefined) =>
  ({ method: 'GET', path: '/live', query, accept: 'text/event-stream', signal }) as const;

const part = encodeURIComponent;

/** `fetch` takes these out of a path, even percent-encoded. */
const isDotSegment = (text: string) => text === '.' || text === '..';
