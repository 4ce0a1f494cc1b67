import { Client } from 'pg';
import { expect, test, vi } from 'vitest';
import { createTestDatabase } from '../support/database.ts';
import { readMetric } from '../support/replica.ts';
import { completed, deliver, newJobId } from '../support/sender.ts';
import { startTestService } from '../support/service.ts';

const TALLIES = ['rollups', 'drift', 'secret matches'];

test('the lease is renewed while all else beside deliveries waits for Postgres', async () => {
  await using database = await createTestDatabase();
  // What waits for a lock does so for 0.4 of the deadline: longer than a lease.
  await using relay = await startTestService({
    database,
    env: { ANSWER_DEADLINE_MS: '9500', REFUSED_ROWS_PER_MINUTE: '0' },
  });
  const said = (msg: string) => relay.log.filter((line) => line['msg'] === msg);
  const session = new Client({ connectionString: database.url });
  session.on('error', () => {});
  await session.connect();
  try {
    await vi.waitFor(() => expect(said('this replica leads the relay')).toHaveLength(1), { timeout: 5_000 });
    expect(await deliver(relay.webhooks, completed(newJobId(), { unheard_of: 1 }))).toMatchObject({
      status: 202,
    });
    expect(await deliver(relay.webhooks, completed(newJobId()), { secret: 'another' })).toMatchObject({
      status: 401,
    });
    await session.query('begin');
    await session.query(
      'lock table rollups, drift, secret_matches, refusals, replays, outbox in access exclusive mode',
    );

    // Each has waited for as long as it may, and begins again: rounds, replays, counts, and the gauges' question.
    await vi.waitFor(
      async () => {
        await readMetric(relay.operators, 'tallyhook_outbox_pending');
        const gaveUp = said('counts stay in memory for now').map(({ tally }) => tally);
        expect(new Set(gaveUp)).toEqual(new Set(TALLIES));
        expect(said('refusal counts stay in memory for now')).not.toEqual([]);
        expect(said('the relay could not reach its outbox')).not.toEqual([]);
      },
      { timeout: 25_000, interval: 100 },
    );

    expect(said('the relay lease could not be renewed')).toEqual([]);
    expect(said('the relay lease was lost')).toEqual([]);
    expect(said('this replica leads the relay')).toHaveLength(1);
    expect(await readMetric(relay.operators, 'tallyhook_relay_lease_held')).toBe(1);
    const [lease] = await database.query<{ valid: boolean }>(
      'select expires_at > now() as valid from relay_lease',
    );
    expect(lease).toEqual({ valid: true });
  } finally {
    await session.end();
  }
});
