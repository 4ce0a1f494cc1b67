// A replica behind PgBouncer.

import { expect, test } from 'vitest';
import { connectDatabase } from '../../../src/ledger/sessions/database.ts';
import { createTestDatabase } from '../../support/database.ts';
import { startPgbouncer } from '../../support/pgbouncer.ts';
import { readMetric } from '../../support/requests.ts';
import { completed, deliver, newJobId } from '../../support/sender.ts';
import { createTestLog, startTestService } from '../../support/service.ts';
import { waitFor } from '../../support/waits.ts';

const isThere = Boolean(process.env['TEST_PGBOUNCER']);
const ask = { name: 'one', text: "select current_setting('synchronous_commit') as durability" };

function connectThrough(url: string, connections = 1) {
  const { log, lines } = createTestLog();
  const connection = connectDatabase({
    url,
    name: 'test',
    connections,
    statementTimeoutMs: 5_000,
    lockTimeoutMs: 4_000,
    queryTimeoutMs: 6_000,
    log,
  });
  return { ...connection, lines, [Symbol.asyncDispose]: connection.close };
}

test.runIf(isThere)(
  'one replica works behind PgBouncer with pool_mode=session and its defaults',
  async () => {
    await using database = await createTestDatabase();
    await database.query(`alter database ${database.name} set synchronous_commit = off`);
    await using pooler = await startPgbouncer(database.url);
    await using relay = await startTestService({ database, env: { DATABASE_URL: pooler.url } });

    expect(await deliver(relay.webhooks, completed(newJobId()))).toMatchObject({ status: 202 });
    await using connection = connectThrough(pooler.url);
    expect(await connection.execute(ask, [])).toEqual([{ durability: 'on' }]);
  },
);

test.runIf(isThere)(
  'a pooler that hands sessions around is refused by a sentence, and nothing is set in them',
  async () => {
    await using database = await createTestDatabase();
    await using pooler = await startPgbouncer(database.url, { pool_mode: 'transaction' });
    await using connection = connectThrough(pooler.url);

    await expect(connection.execute(ask, [])).rejects.toMatchObject({ code: 'pooler_unfit' });

    expect(connection.lines.map(({ msg }) => msg)).toEqual([expect.stringContaining('pool_mode=session')]);
  },
);

test.runIf(isThere)(
  'a pool that is smaller than our sessions is told by a sentence and a metric',
  async () => {
    await using database = await createTestDatabase();
    await using pooler = await startPgbouncer(database.url, { default_pool_size: '4' });
    await using relay = await startTestService({ database, env: { DATABASE_URL: pooler.url } });

    await waitFor(
      async () => {
        const metrics = await (await fetch(`${relay.operators}/metrics`)).text();
        expect(metrics).toMatch(
          /tallyhook_database_sessions_refused_total\{pool="[^"]+",reason="starved"\} [1-9]/,
        );
        expect(relay.log.map(({ msg }) => String(msg)).join('\n')).toContain(
          'is smaller than the 20 sessions',
        );
      },
      { timeout: 20_000, interval: 200 },
    );
    expect(await readMetric(relay.operators, 'tallyhook_database_sessions_max')).toBe(20);
  },
);
