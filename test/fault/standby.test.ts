// Commits that wait for a standby that is gone.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { post } from '../support/load.ts';
import { type OwnPostgres, startOwnPostgres } from '../support/own-servers.ts';
import { completed, newJobId } from '../support/sender.ts';
import { startTestService } from '../support/service.ts';
import type { TestDatabase } from '../support/database.ts';
import { sessionsOf } from '../support/facts.ts';
import { fetchAfresh, readMetric } from '../support/requests.ts';
import { waitFor } from '../support/waits.ts';

let postgres: OwnPostgres;

beforeAll(async () => {
  postgres = await startOwnPostgres();
});

afterAll(() => postgres[Symbol.asyncDispose]());

const ENV = { MIGRATE_ON_START: 'true', ANSWER_DEADLINE_MS: '1500' };

/** For a standby that is not there. Not one of our own commits waits for it. */
async function waitForStandby(database: TestDatabase, name: string): Promise<void> {
  await database.query(`alter system set synchronous_standby_names = '${name}'`);
  await database.query('select pg_reload_conf()');
}

const waiting = (database: TestDatabase) =>
  database.query<{ pid: number }>(
    `select pid from pg_stat_activity where datname = '${database.name}' and wait_event = 'SyncRep'`,
  );

/** As an operator does who looks for what hangs. */
const cancelWaits = (database: TestDatabase) =>
  database.query(
    `select pg_cancel_backend(pid) from pg_stat_activity
     where datname = '${database.name}' and application_name = 'tallyhook intake' and wait_event = 'SyncRep'`,
  );

test('guarantee 2: no 2xx for commits whose wait for a standby was cancelled, and no readiness by such a probe', async () => {
  await using database = await postgres.createDatabase();
  await using relay = await startTestService({ database, env: { ...ENV, ANSWER_DEADLINE_MS: '9500' } });
  expect((await post(relay.webhooks, completed(newJobId()))).status).toBe(202);
  await waitForStandby(database, 'nobody');
  try {
    await waitFor(async () => {
      await fetchAfresh(`${relay.operators}/readyz`);
      await cancelWaits(database);
      expect(relay.log.map(({ msg }) => msg)).toContain(
        'not ready, since the ledger takes no writes: somebody cancelled the wait for a standby, which may not have the write',
      );
    });

    // On all connections of the intake, in one write or several.
    const statuses: (number | undefined)[] = [];
    for (let nth = 0; nth < 6; nth++)
      void post(relay.webhooks, completed(newJobId())).then(({ status }) => statuses.push(status));
    await waitFor(async () => {
      await cancelWaits(database);
      expect(statuses).toHaveLength(6);
    });
    expect(new Set(statuses)).toEqual(new Set([503]));
    expect(relay.log).toContainEqual(
      expect.objectContaining({ kind: 'unreplicated', msg: expect.stringMatching(/^a write failed/) }),
    );
  } finally {
    await waitForStandby(database, '');
  }
});

test('commits that hang keep their sessions and open no others, deliveries get 503, and all goes on by itself', async () => {
  await using database = await postgres.createDatabase();
  await using relay = await startTestService({ database, env: ENV });
  expect((await post(relay.webhooks, completed(newJobId()))).status).toBe(202);
  const max = await readMetric(relay.operators, 'tallyhook_database_sessions_max');
  await waitForStandby(database, 'nobody');
  let most = 0;
  try {
    // More rounds than the intake has connections: each of them would leave a session, or two.
    for (let round = 0; round < 5; round++) {
      const answers = await Promise.all(
        Array.from({ length: 4 }, () => post(relay.webhooks, completed(newJobId()))),
      );
      expect(answers.map(({ status }) => status)).toEqual([503, 503, 503, 503]);
      most = Math.max(most, (await waiting(database)).length);
      expect(await sessionsOf(database)).toBeLessThanOrEqual(max + 1);
    }
    expect(await readMetric(relay.operators, 'tallyhook_database_statements_unanswered')).toBeGreaterThan(1);
    const intake = await database.query(
      `select from pg_stat_activity where datname = '${database.name}' and application_name = 'tallyhook intake'`,
    );
    expect(intake).toHaveLength(2);
  } finally {
    await waitForStandby(database, '');
  }
  await waitFor(async () => expect((await post(relay.webhooks, completed(newJobId()))).status).toBe(202), {
    timeout: 10_000,
    interval: 100,
  });
  expect(most).toBeGreaterThan(1);
});
