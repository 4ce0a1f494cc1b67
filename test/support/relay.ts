// The parts between the outbox and the broker, wired as in the service but driven by the test, which calls `runOnce()`.
// Entries are added to the outbox as the ledger's statement adds them.

import { randomUUID } from 'node:crypto';
import type { Kysely, Transaction } from 'kysely';
import type { OutgoingMessage } from '../../src/relay/publication.ts';
import { createPublisher, type Publisher } from '../../src/relay/publisher.ts';
import { topologyOf } from '../../src/relay/topology.ts';
import {
  connectDatabase,
  type DatabaseConnection,
  type DatabaseOptions,
} from '../../src/ledger/sessions/database.ts';
import type { Database } from '../../src/ledger/schema/tables.ts';
import { keepPartitions } from '../../src/ledger/upkeep/partitions.ts';
import { createOutbox, type Outbox } from '../../src/relay/outbox.ts';
import { createHandOff, type HandOff } from '../../src/relay/hand-off.ts';
import { createLease, type Lease } from '../../src/ledger/upkeep/lease.ts';
import { entriesOf } from '../../src/relay/results.ts';
import { createRelay, type Relay, type RelayLimits } from '../../src/relay/relay.ts';
import type { EntriesFilter } from '../../src/operators/outbox/orders.contract.ts';
import { decide, type Decided, type Decision } from '../../src/operators/outbox/decide.queries.ts';
import type { Which } from '../../src/operators/kernel/order/order.ts';
import { amqpUrl } from './bus.ts';
import type { TestDatabase } from './database.ts';
import { completed, progress } from './sender.ts';
import { patience } from './patience.ts';
import { createTestLog } from './service.ts';
import { openSession } from './transaction.ts';
import { waitFor } from './waits.ts';

const now = () => performance.now();

export type TestRelay = AsyncDisposable & {
  readonly id: string;
  readonly relay: Relay;
  readonly lease: Lease;
  readonly outbox: Outbox;
  /** What is written through it goes to the relay from memory. */
  readonly handOff: HandOff;
  readonly publisher: Publisher;
  readonly log: readonly Record<string, unknown>[];
  /** Every publish so far, in order. */
  readonly published: readonly OutgoingMessage[];
  /** The most that was unconfirmed at once: events of one job, events in all, and bytes. */
  readonly peak: () => { job: number; total: number; bytes: number };
  /** The most that was loaded and not settled at once, in characters of data. */
  readonly peakLoaded: () => number;
  /** How often entries were loaded from the outbox. */
  readonly loads: () => number;
  /** From now on publishes wait before they reach the broker, until the returned function is called. */
  readonly holdPublishes: () => () => void;
  /** From now on loads wait before they reach the database, until the returned function is called; but `passing` go first. */
  readonly holdLoads: (passing?: number) => () => void;
  /** Runs rounds until `isDone`. */
  readonly runUntil: (isDone: () => boolean | Promise<boolean>, timeoutMs?: number) => Promise<void>;
};

export function connectTestDatabase(
  database: TestDatabase,
  options: Partial<Pick<DatabaseOptions, 'connections' | 'idle' | 'reading' | 'writing'>> = {},
): DatabaseConnection & AsyncDisposable {
  const connection = connectDatabase({
    url: database.url,
    name: 'test',
    connections: 4,
    statementTimeoutMs: patience(3_000),
    lockTimeoutMs: patience(2_000),
    queryTimeoutMs: patience(3_500),
    log: createTestLog().log,
    ...options,
  });
  return { ...connection, [Symbol.asyncDispose]: connection.close };
}

export async function createTestRelay(options: {
  database: TestDatabase;
  exchange: string;
  limits?: Partial<RelayLimits>;
  leaseMs?: number;
  amqpUrl?: string;
  confirmDeadlineMs?: number;
  /** The clock of the relay alone, which a test may set ahead of the others. */
  now?: () => number;
  /** The ids of messages are added to it as the broker confirms them. */
  confirmed?: string[];
}): Promise<TestRelay> {
  const { log, lines } = createTestLog();
  const id = randomUUID();
  const connection = connectTestDatabase(options.database);
  await keepPartitions(connection, { retentionDays: 30 });
  const publisher = createTestPublisher({
    exchange: options.exchange,
    url: options.amqpUrl ?? amqpUrl(),
    confirmDeadlineMs: options.confirmDeadlineMs ?? 40_000,
    log,
  });
  const observed = observe(publisher, options.confirmed ?? []);
  const lease = createLease({
    name: 'outbox',
    connection,
    holder: id,
    leaseMs: options.leaseMs ?? 60_000,
    now,
    log,
    mayLead: () => true,
    onTaken: () => {},
  });
  const rounds = connectTestDatabase(options.database, { connections: 1, idle: 'kept' });
  const results = connectTestDatabase(options.database, { connections: 1, writing: 'repeatable' });
  const outbox = createOutbox({ rounds, results, beside: connection }, { relayId: id });
  const measured = measure(outbox);
  const handOff = createHandOff();
  const relay = createRelay({
    outbox: measured.outbox,
    handOff,
    lease,
    publisher: observed.publisher,
    routingPrefix: 'job',
    limits: {
      pollMs: 50,
      inFlight: 500,
      inFlightBytes: 16 * 1024 * 1024,
      maxAttempts: 20,
      ...options.limits,
    },
    now: options.now ?? now,
    random: () => 0,
    log,
    observe: () => {},
  });
  await waitFor(
    () => {
      if (!publisher.isReady()) throw new Error('the publisher is not connected');
    },
    { timeout: 10_000, interval: 10 },
  );
  return {
    id,
    relay,
    lease,
    outbox,
    handOff,
    publisher,
    log: lines,
    published: observed.published,
    peak: observed.peak,
    holdPublishes: observed.hold,
    peakLoaded: measured.peak,
    loads: measured.loads,
    holdLoads: measured.hold,
    runUntil: (isDone, timeoutMs = 15_000) =>
      waitFor(
        async () => {
          await relay.runOnce();
          if (!(await isDone())) throw new Error('not yet');
        },
        { timeout: timeoutMs, interval: 10 },
      ),
    [Symbol.asyncDispose]: async () => {
      await relay.stop(2_000);
      await lease.release();
      await publisher.close();
      await results.close();
      await rounds.close();
      await connection.close();
    },
  };
}

export function createTestPublisher({
  exchange,
  ...options
}: { exchange: string } & Partial<Parameters<typeof createPublisher>[0]>): Publisher {
  return createPublisher({
    url: amqpUrl(),
    topology: topologyOf({ exchange }),
    heartbeatS: 10,
    connectTimeoutMs: 3_000,
    confirmDeadlineMs: 40_000,
    now,
    log: createTestLog().log,
    onReady: () => {},
    ...options,
  });
}

/** A message of which only the id matters. */
export function newMessage(messageId: string): OutgoingMessage {
  return {
    messageId,
    routingKey: 'job.completed.default',
    contentType: 'application/json',
    type: 'test',
    timestamp: new Date(),
    body: Buffer.from('{}'),
  };
}

/** Wraps the publisher and counts what is unconfirmed. */
function observe(publisher: Publisher, confirmed: string[]) {
  const published: OutgoingMessage[] = [];
  const perJob = new Map<string, number>();
  const current = { total: 0, bytes: 0 };
  const most = { job: 0, total: 0, bytes: 0 };
  let released = Promise.resolve();
  const count = ({ messageId, body }: OutgoingMessage, by: 1 | -1) => {
    const job = messageId.split(':').slice(0, 2).join(':');
    perJob.set(job, (perJob.get(job) ?? 0) + by);
    current.total += by;
    current.bytes += by * body.length;
    most.job = Math.max(most.job, perJob.get(job) ?? 0);
    most.total = Math.max(most.total, current.total);
    most.bytes = Math.max(most.bytes, current.bytes);
  };
  return {
    published,
    peak: () => ({ ...most }),
    hold: () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      released = promise;
      return resolve;
    },
    publisher: {
      isReady: publisher.isReady,
      publish: async (message: OutgoingMessage) => {
        published.push(message);
        count(message, 1);
        await released;
        const publication = await publisher.publish(message);
        count(message, -1);
        if (publication.result === 'confirmed') confirmed.push(message.messageId);
        return publication;
      },
    },
  };
}

/** The real outbox, with a count of what the relay holds in memory. */
function measure(outbox: Outbox) {
  const loaded = new Map<string, number>(); // by position: an entry that is loaded again counts once
  let most = 0;
  let loads = 0;
  let held = { from: 0, released: Promise.resolve() };
  return {
    peak: () => most,
    loads: () => loads,
    hold: (passing = 0) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      held = { from: loads + passing, released: promise };
      return resolve;
    },
    outbox: {
      ...outbox,
      loadPending: async (...args: Parameters<Outbox['loadPending']>) => {
        loads += 1;
        if (loads > held.from) await held.released;
        const some = await outbox.loadPending(...args);
        for (const { entry } of some.found) loaded.set(entry.position, entry.data.length);
        most = Math.max(
          most,
          [...loaded.values()].reduce((sum, length) => sum + length, 0),
        );
        return some;
      },
      settle: async (...args: Parameters<Outbox['settle']>) => {
        await outbox.settle(...args);
        for (const { position } of entriesOf(args[0])) loaded.delete(position);
      },
    },
  };
}

type AddedEvent = { readonly jobId: string; readonly percent?: number; readonly bytes?: number };

/** The values of ADD_ENTRY. */
export const entryValues = ({ jobId, percent, bytes = 0 }: AddedEvent): unknown[] => [
  jobId,
  percent ?? null,
  bytes,
  JSON.stringify(completed(jobId)),
  JSON.stringify(progress(jobId, percent ?? 0)),
];

/** Adds an event with its delivery and a batch of its own, as intake does. Returns the sequence. */
export const ADD_ENTRY = `
  with given as (
    select gen_random_uuid() as id, $1::text as job_id,
           case when $2::int is null then 'completed' else 'processing' end as status, $2::int as progress
  ),
  body as (
    select id, convert_to((case status
      when 'completed' then $4::jsonb || jsonb_build_object('job_id', job_id)
      else $5::jsonb || jsonb_build_object('job_id', job_id, 'progress_percentage', progress)
    end || jsonb_build_object('padding', repeat('x', $3::int)))::text, 'UTF8') as body
    from given
  ),
  job as (
    insert into jobs as j (source, job_id, first_seen_at, last_seen_at)
    select 'default', job_id, now(), now() from given
    on conflict (source, job_id) do update set last_seen_at = now() returning source, job_id
  ),
  event as (
    insert into events (source, job_id, status, progress_percentage, late, occurred_at, recorded_at,
                        delivery_id, content_hash, repeats)
    select source, job_id, status, progress, false, null, now(), id, '', 0 from given join job using (job_id)
    returning *
  ),
  delivery as (
    insert into deliveries (id, received_at, source, outcome, http_status, job_id, status, progress_percentage,
                            event_sequence, path, headers, body_bytes, body)
    select e.delivery_id, e.recorded_at, e.source, 'accepted', 202, e.job_id, e.status, e.progress_percentage,
           e.sequence, '/webhooks', '{}', octet_length(body), body
    from event e join body on body.id = e.delivery_id
  )
  insert into outbox_batches (first, sequences, bytes)
  select sequence, array[sequence], octet_length(body) from event join body on body.id = event.delivery_id
  returning first as sequence`;

/** Adds a completed event for each of these jobs, all in one commit. */
export async function addEntries(database: TestDatabase, jobIds: readonly string[]): Promise<void> {
  await using session = await openSession(database);
  await session.query('begin');
  for (const jobId of jobIds) await session.query(ADD_ENTRY, entryValues({ jobId }));
  await session.query('commit');
}

/** Without `percent` it is a completed event. */
export async function addEntry(database: TestDatabase, event: AddedEvent): Promise<string> {
  const [row] = await database.query<{ sequence: string }>(ADD_ENTRY, entryValues(event));
  return row?.sequence as string;
}

/** Retries entries as an operator does: all of a state, or that of one event. Returns how many. */
export async function retry(
  db: DatabaseConnection['db'],
  which: 'returned' | 'parked' | { readonly id: string },
): Promise<number> {
  const wanted = typeof which === 'string' ? { filter: { state: which } } : { ids: [which.id] };
  return (await decideNow(db, 'retry', wanted)).decided.length;
}

/** Decides as a request of an operator does. */
export const decideIn = (
  trx: Transaction<Database>,
  decision: Decision,
  which: Which<EntriesFilter>,
  limit = 1_000,
): Promise<Decided> => decide(trx, decision, { which, limit, sources: null, after: undefined, by: 'a test' });

export const decideNow = (
  db: Kysely<Database>,
  decision: Decision,
  which: Which<EntriesFilter>,
): Promise<Decided> => db.transaction().execute((trx) => decideIn(trx, decision, which));
