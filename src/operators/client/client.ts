// A client of the operators' API. Answers are checked, errors are typed (errors.ts), limits are honoured
// (transport.ts). Every action takes the key by which the service knows a repeated request.

import { z } from 'zod';
import type { HttpClientOptions, Query } from '../../http-client.ts';
import { pages } from '../../pages.ts';
import {
  type Delivery,
  deliverySchema,
  type DryRun,
  dryRunSchema,
  type Entry,
  entrySchema,
  type Event,
  eventSchema,
  type Job,
  jobSchema,
  type LogLine,
  logLineSchema,
  type Publication,
  publicationSchema,
  type Release,
  releaseSchema,
  type Replay,
  replaySchema,
  type Source,
  sourceSchema,
  type Stats,
  statsSchema,
  storyItemSchema,
} from './schemas.ts';
import { readEvents, type ServerSentEvent } from './server-sent-events.ts';
import { createTransport } from './transport.ts';

export { ApiAnswerError, InvalidAnswerError, NoAnswerError } from './errors.ts';
export type { Query } from '../../http-client.ts';
export type * from './schemas.ts';
export type { ServerSentEvent } from './server-sent-events.ts';

const LISTS = {
  jobs: jobSchema,
  deliveries: deliverySchema,
  events: eventSchema,
  publications: publicationSchema,
  quarantine: deliverySchema,
  outbox: entrySchema,
  replays: replaySchema,
  'operator-log': logLineSchema,
} as const;

/** What each list is made of. */
export type Items = {
  readonly jobs: Job;
  readonly deliveries: Delivery;
  readonly events: Event;
  readonly publications: Publication;
  readonly quarantine: Delivery;
  readonly outbox: Entry;
  readonly replays: Replay;
  readonly 'operator-log': LogLine;
};
export type ListName = keyof Items;

export type ReplayOrder = {
  readonly event_ids?: readonly string[];
  readonly filter?: Query;
  readonly queue?: string;
  readonly rate_per_second?: number;
  readonly note?: string;
};

export type OutboxCounts = {
  /** Of events themselves; replays' copies are counted apart. */
  readonly counts: { readonly pending: number; readonly returned: number; readonly parked: number };
  readonly copies: number;
  /** False if there are more than were counted. */
  readonly counts_complete: boolean;
  readonly oldest_pending_at: string | null;
};

export type CallOptions = { readonly signal?: AbortSignal | undefined };

export type OperatorsClient = ReturnType<typeof createOperatorsClient>;

/** The largest page of a list, and of a job's story. */
const PAGE_MAX = 200;
const STORY_PAGE_MAX = 500;

const countsSchema = z.looseObject({
  counts: z.object({ pending: z.number(), returned: z.number(), parked: z.number() }),
  copies: z.number(),
  counts_complete: z.boolean(),
  oldest_pending_at: z.string().nullable(),
});
const storyPageSchema = z.looseObject({
  /** Null for a job that no event told of: its deliveries are all in quarantine. */
  job: jobSchema.nullable(),
  items: z.array(storyItemSchema),
  next_cursor: z.string().nullable(),
});
const releasesSchema = z.looseObject({
  items: z.array(releaseSchema),
  next_cursor: z.string().nullable(),
});
const retriedSchema = z.looseObject({ retried: z.number(), next_cursor: z.string().nullable() });
const sourcesSchema = z.looseObject({ items: z.array(sourceSchema) });

/** @throws TypeError for a base URL or token that cannot be used; it quotes neither. */
export function createOperatorsClient(options: HttpClientOptions) {
  const { json, stream } = createTransport(options);
  const get = <T>(path: string, schema: z.ZodType<T>, query?: Query, { signal }: CallOptions = {}) =>
    json({ method: 'GET', path, ...(query && { query }), signal }, schema);
  const act = <T>(path: string, schema: z.ZodType<T>, idempotencyKey: string, body?: unknown) =>
    json({ method: 'POST', path, idempotencyKey, ...(body !== undefined && { body }) }, schema);

  /** The items of a list, page by page as they are asked for; at most `max` of them. */
  async function* each<N extends ListName>(
    name: N,
    query: Query = {},
    { max = Number.POSITIVE_INFINITY, signal }: CallOptions & { readonly max?: number } = {},
  ): AsyncGenerator<Items[N], void, undefined> {
    const schema = z.looseObject({
      items: z.array(LISTS[name] as unknown as z.ZodType<Items[N]>),
      next_cursor: z.string().nullable(),
    });
    let left = max;
    for await (const page of pages((cursor) =>
      get(`/${name}`, schema, { ...query, limit: Math.min(PAGE_MAX, left), cursor }, { signal }),
    )) {
      yield* page.items.slice(0, left);
      left -= page.items.length;
      if (left <= 0) return;
    }
  }

  return {
    each,

    /** A job's story, oldest first, page by page; each page has the job, too, if anything but quarantine knows it. */
    story: (source: string, jobId: string, callOptions: CallOptions = {}) =>
      pages((cursor) =>
        isDotSegment(jobId)
          ? get(
              '/story',
              storyPageSchema,
              { source, job_id: jobId, limit: STORY_PAGE_MAX, cursor },
              callOptions,
            )
          : get(
              `/jobs/${part(source)}/${part(jobId)}`,
              storyPageSchema,
              { limit: STORY_PAGE_MAX, cursor },
              callOptions,
            ),
      ),

    delivery: (id: string): Promise<Delivery> => get(`/deliveries/${part(id)}`, deliverySchema),
    /** Byte for byte as it came. The look is recorded in the operator log. */
    deliveryBody: (id: string) =>
      stream({ method: 'GET', path: `/deliveries/${part(id)}/body`, accept: 'application/octet-stream' }),
    event: (id: string): Promise<Event> => get(`/events/${part(id)}`, eventSchema),
    outboxCounts: (query: Query = {}): Promise<OutboxCounts> =>
      get('/outbox', countsSchema, { ...query, limit: 1 }),
    stats: (query: Query): Promise<Stats> => get('/stats', statsSchema, query),
    sources: async (): Promise<readonly Source[]> => (await get('/sources', sourcesSchema)).items,

    /** NDJSON or CSV of a list, however long. Recorded in the operator log. */
    exportList: (query: Query, { signal }: CallOptions = {}) =>
      stream({ method: 'GET', path: '/export', query, accept: '*/*', signal }),
    /** Deliveries and publications as they happen, until the signal is aborted or the connection is lost. */
    live: (query: Query, { signal }: CallOptions = {}): AsyncGenerator<ServerSentEvent, void, undefined> =>
      readEvents(stream({ method: 'GET', path: '/live', query, accept: 'text/event-stream', signal })),

    replay: (id: string, callOptions: CallOptions = {}): Promise<Replay> =>
      get(`/replays/${part(id)}`, replaySchema, {}, callOptions),
    tryReplay: (order: ReplayOrder, key: string): Promise<DryRun> =>
      act('/replays', dryRunSchema, key, { ...order, dry_run: true }),
    createReplay: (order: ReplayOrder, key: string): Promise<Replay> =>
      act('/replays', replaySchema, key, order),
    steerReplay: (id: string, action: 'pause' | 'resume' | 'cancel', key: string): Promise<Replay> =>
      act(`/replays/${part(id)}/${action}`, replaySchema, key),

    release: (deliveryId: string, key: string): Promise<Release> =>
      act(`/quarantine/${part(deliveryId)}/release`, releaseSchema, key),
    /** At most 100 at a time; `next_cursor` leads on. */
    releaseSome: (order: { filter: Query; cursor?: string }, key: string) =>
      act('/quarantine/release', releasesSchema, key, order),

    /** `id`: the entry's own digits, or an event's id. */
    decide: (id: string, action: 'retry' | 'discard' | 'park', key: string): Promise<Entry> =>
      act(`/outbox/${part(id)}/${action}`, entrySchema, key),
    /** At most 1,000 at a time; `next_cursor` leads on. */
    retrySome: (order: { state: 'returned' | 'parked'; source?: string; cursor?: string }, key: string) =>
      act('/outbox/retry', retriedSchema, key, order),
  };
}

const part = encodeURIComponent;

/** `fetch` takes these out of a path, even percent-encoded. */
const isDotSegment = (text: string) => text === '.' || text === '..';
