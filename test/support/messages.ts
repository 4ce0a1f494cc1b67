// Messages of incidents with a real file, a real lease and a log of all levels, beside a database whose rows a test writes.

import { randomUUID, randomUUIDv7 } from 'node:crypto';
import { createMetrics } from '../../src/base/metrics.ts';
import { createLease, type Lease } from '../../src/ledger/upkeep/lease.ts';
import { composeMessages, type Messages } from '../../src/watch/messages/compose.ts';
import type { TestDatabase } from './database.ts';
import { createFolder } from './folder.ts';
import { connectTestDatabase } from './relay.ts';
import { createTestLog } from './test-log.ts';

export type TestMessages = AsyncDisposable & {
  readonly messages: Messages;
  readonly lease: Lease;
  readonly lines: readonly Record<string, unknown>[];
  /** The names of the statements so far. */
  readonly statements: readonly string[];
  /** Writes ALERTS_FILE anew. */
  readonly write: (alerts: unknown) => Promise<void>;
  /** The value of one sample. */
  readonly metric: (name: string, result: string) => Promise<number>;
  readonly metrics: () => Promise<string>;
};

const now = () => performance.now();

/** Holds the lease if it is free, and renews it for as long as it has it. */
export async function startMessages({
  database,
  alerts,
  leaseMs = 60_000,
}: {
  database: TestDatabase;
  alerts: unknown;
  leaseMs?: number;
}): Promise<TestMessages> {
  const stack = new AsyncDisposableStack();
  try {
    const { log, lines } = createTestLog();
    log.level = 'trace';
    const folder = stack.use(await createFolder());
    const connection = stack.use(connectTestDatabase(database));
    const statements: string[] = [];
    const observed: Pick<typeof connection, 'execute'> = {
      execute: (statement, values) => {
        statements.push(statement.name);
        return connection.execute(statement, values);
      },
    };
    const lease = createLease({
      name: 'watch',
      connection,
      holder: randomUUID(),
      leaseMs,
      now,
      log,
      mayLead: () => true,
    });
    await lease.attempt();
    const metrics = createMetrics({ version: 'test', sources: () => [] });
    const write = async (content: unknown) =>
      void (await folder.write(
        'alerts.json',
        typeof content === 'string' ? content : JSON.stringify(content),
      ));
    await write(alerts);
    const messages = await composeMessages(
      { alerts: { file: folder.path('alerts.json') } },
      {
        connection: observed,
        lease,
        metrics,
        now,
        log,
        started: stack,
        isWell: () => true,
        graceMs: () => 20_000,
      },
    );
    messages.start();
    return {
      messages,
      lease,
      lines,
      statements,
      write,
      metrics: () => metrics.registry.metrics(),
      metric: async (name, result) => {
        const found = await metrics.registry.getSingleMetric(name)?.get();
        return found?.values.find(({ labels }) => labels['result'] === result)?.value ?? Number.NaN;
      },
      [Symbol.asyncDispose]: () => stack.disposeAsync(),
    };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

export type TestIncident = {
  readonly condition?: string;
  readonly subject?: string;
  readonly severity?: 'warning' | 'critical';
  readonly summary?: string;
  readonly beganAt?: string;
  readonly endedAt?: string | null;
  readonly eventsWaited?: number;
};

export async function addIncident(database: TestDatabase, incident: TestIncident = {}): Promise<string> {
  const id = randomUUIDv7();
  await database.query(
    `insert into incidents (id, condition, subject, severity, summary, began_at, ended_at, events_waited)
     values ($1, $2, $3, $4, $5, $6, $7, $8)`,
    [
      id,
      incident.condition ?? 'outbox-lag',
      incident.subject ?? '',
      incident.severity ?? 'critical',
      incident.summary ?? 'The oldest pending event is 312 s old.',
      incident.beganAt ?? '2026-01-15T10:30:00Z',
      incident.endedAt ?? null,
      incident.eventsWaited ?? 0,
    ],
  );
  return id;
}

/** @param options.dueAgo an interval @returns its id */
export async function addMessage(
  database: TestDatabase,
  incident: string,
  options: { channel: string; moment?: 'begin' | 'end'; dueAgo?: string; attempts?: number },
): Promise<string> {
  const { channel, moment = 'begin', dueAgo = '0 s', attempts = 0 } = options;
  const id = randomUUIDv7();
  await database.query(
    `insert into incident_messages (id, incident_id, moment, channel, due_at, attempts)
     values ($1, $2, $3, $4, clock_timestamp() - $5::interval, $6)`,
    [id, incident, moment, channel, dueAgo, attempts],
  );
  return id;
}

export type MessageRow = {
  readonly id: string;
  readonly moment: string;
  readonly channel: string;
  readonly attempts: number;
  readonly is_sent: boolean;
  readonly is_given_up: boolean;
  readonly last_error: string | null;
};

/** In the order in which they were made. */
export const messageRows = (database: TestDatabase): Promise<MessageRow[]> =>
  database.query<MessageRow>(
    `select id, moment, channel, attempts, sent_at is not null as is_sent, given_up_at is not null as is_given_up, last_error
     from incident_messages order by due_at, id`,
  );

/** Another replica has the lease now. */
export async function loseLease(database: TestDatabase): Promise<void> {
  await database.query(
    `update relay_lease set holder = gen_random_uuid(), epoch = epoch + 1, expires_at = clock_timestamp() + interval '1 hour'
     where name = 'watch'`,
  );
}

/** The lease has run out, as after its holder was killed. */
export async function expireLease(database: TestDatabase): Promise<void> {
  await database.query(`update relay_lease set expires_at = clock_timestamp() where name = 'watch'`);
}
