import { expect, test } from 'vitest';
import { createTestDatabase } from '../support/database.ts';
import { startReplica, type Replica } from '../support/replica.ts';
import { completed, deliver, newJobId } from '../support/sender.ts';
import { waitFor } from '../support/waits.ts';

const DROPPED = 'tallyhook_log_lines_dropped_total';
/** Long, since it is in each log line twice: so fewer deliveries fill every buffer. */
const longJobId = () => `${newJobId()}_${'x'.repeat(100)}`;

/** Sends until log lines have been dropped. @returns the status of each answer. */
async function sendUntilDropped(replica: Replica): Promise<number[]> {
  const statuses: number[] = [];
  await waitFor(
    async () => {
      const sent = Array.from({ length: 200 }, () => deliver(replica.webhooks, completed(longJobId())));
      statuses.push(...(await Promise.all(sent)).map(({ status }) => status));
      expect(await replica.metric(DROPPED)).toBeGreaterThan(100);
    },
    { timeout: 25_000, interval: 0 },
  );
  return statuses;
}

test('a stalled reader of the log stops no delivery: lines without room are dropped and counted', async () => {
  await using database = await createTestDatabase();
  await using replica = await startReplica({ databaseUrl: database.url });
  expect(await replica.metric(DROPPED)).toBe(0);

  replica.stallLog(true);
  const statuses = await sendUntilDropped(replica);
  replica.stallLog(false);

  expect(new Set(statuses)).toEqual(new Set([202]));
  const [row] = await database.query<{ count: number }>('select count(*)::int as count from deliveries');
  expect(row?.count).toBe(statuses.length);
  // Each line was either read or counted.
  await waitFor(() => {
    const lines = replica.log.filter(({ msg }) => msg === 'delivery').length;
    const notices = replica.log.filter(({ msg }) => /^\d+ log lines dropped$/.test(String(msg)));
    const dropped = notices.reduce((sum, line) => sum + Number(line['dropped']), 0);
    expect(notices).not.toEqual([]);
    expect(lines + dropped).toBe(statuses.length);
  });

  const marker = longJobId();
  await deliver(replica.webhooks, completed(marker));
  await waitFor(() => expect(replica.log.some(({ job }) => job === marker)).toBe(true));
  replica.kill('SIGTERM');
  expect(await replica.exited).toEqual({ code: 0, signal: null });
  expect(replica.log.at(-1)).toMatchObject({ msg: 'stopped' });
});

test('it ends when it is asked to, though nobody reads its log', async () => {
  await using database = await createTestDatabase();
  await using replica = await startReplica({ databaseUrl: database.url });
  replica.stallLog(true);
  await sendUntilDropped(replica);

  replica.kill('SIGTERM');
  await waitFor(() => expect(replica.hasExited()).toBe(true));
  replica.stallLog(false);

  expect(await replica.exited).toEqual({ code: 0, signal: null });
});
