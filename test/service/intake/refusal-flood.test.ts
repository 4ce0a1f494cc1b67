// Floods: what refusals leave in the log and in the ledger, who operators see behind them, and what 503s leave in the log.

import { expect, test } from 'vitest';
import { cliOf } from '../../support/cli.ts';
import { createTestDatabase } from '../../support/database.ts';
import { createFolder } from '../../support/folder.ts';
import { deliveries, refusals } from '../../support/ledger.ts';
import { operators } from '../../support/operators.ts';
import { completed, deliver, newJobId } from '../../support/sender.ts';
import { startTestService } from '../../support/service.ts';
import { openTransaction } from '../../support/transaction.ts';

const ROWS = 5;
const REQUESTS = 2_000;
const AT_ONCE = 50;
const TEAM_SECRET = 'planted-secret-of-team-a';

type Line = {
  readonly msg: string;
  readonly source: string;
  readonly outcomes: Record<string, number>;
  readonly statuses: Record<string, number>;
  readonly addresses: readonly { address: string; count: number }[];
};

const sum = (counts: Iterable<number>) => Array.from(counts).reduce((all, count) => all + count, 0);
const addUp = (counts: readonly Record<string, number>[], key: string) =>
  sum(counts.map((count) => count[key] ?? 0));

/** Of each ten: seven forgeries by one address, two by an address each that come once, one with a wrong method. */
async function flood(url: string, number: number): Promise<number> {
  const kind = number % 10;
  const address = kind < 7 ? '203.0.113.7' : kind < 9 ? `2001:db8::${number.toString(16)}` : '203.0.113.9';
  const { status } = await fetch(url, {
    method: kind === 9 ? 'PUT' : 'POST',
    headers: { 'X-Forwarded-For': address },
    body: 'x',
  });
  return status;
}

test('each second and source has one log line, rows are limited, and each refusal is counted once', async () => {
  await using folder = await createFolder();
  const sources = await folder.write(
    'sources.json',
    JSON.stringify({ 'team-a': { secrets: [TEAM_SECRET] } }),
  );
  await using database = await createTestDatabase();
  const env = {
    TRUSTED_PROXIES: '127.0.0.1',
    SOURCES_FILE: sources,
    REFUSED_ROWS_PER_MINUTE: String(ROWS),
  };
  let lines: readonly Record<string, unknown>[];
  let seconds: number;
  {
    await using relay = await startTestService({ database, env });
    lines = relay.log;
    const startedMs = performance.now();
    let next = 0;
    const run = async () => {
      while (next < REQUESTS) {
        const number = next++;
        const url = number % 2 === 0 ? `${relay.webhooks}/team-a` : `${relay.webhooks}/nobody-${number}`;
        expect(await flood(url, number)).toBe(number % 10 === 9 ? 405 : 401);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, run));
    seconds = (performance.now() - startedMs) / 1_000;
    expect(await deliver(relay.webhooks, completed(newJobId()))).toMatchObject({ status: 202 });
  }

  const own = lines.filter(({ outcome }) => outcome === 'unauthorized' || outcome === 'refused');
  const counted = lines.filter(({ msg }) => msg === 'more deliveries refused') as unknown as Line[];
  // Two sources, `team-a` and `unknown`, and two minutes at most.
  expect(own.length).toBeLessThanOrEqual(2 * ROWS * Math.ceil(1 + seconds / 60));
  expect(counted.length).toBeLessThanOrEqual(2 * (seconds + 2));
  for (const line of counted) expect(JSON.stringify(line).length).toBeLessThan(1_000);

  for (const [source, kinds] of [
    ['team-a', { unauthorized: REQUESTS / 2, refused: 0 }],
    ['unknown', { unauthorized: REQUESTS / 2 - REQUESTS / 10, refused: REQUESTS / 10 }],
  ] as const) {
    const ownOf = own.filter((line) => line['source'] === source);
    const countedOf = counted.filter((line) => line.source === source);
    const told = (outcome: string) =>
      ownOf.filter((line) => line['outcome'] === outcome).length +
      addUp(
        countedOf.map(({ outcomes }) => outcomes),
        outcome,
      );
    expect({ unauthorized: told('unauthorized'), refused: told('refused') }).toEqual(kinds);
    expect(sum(countedOf.flatMap(({ statuses }) => Object.values(statuses)))).toBe(
      REQUESTS / 2 - ownOf.length,
    );
    for (const { addresses } of countedOf) {
      expect(addresses.length).toBeLessThanOrEqual(5);
      expect(addresses.map(({ count }) => count)).toEqual(
        addresses.map(({ count }) => count).toSorted((a, b) => b - a),
      );
    }
    // The ledger tells the same: a row for each line, and a count for all the rest.
    const rows = (await deliveries(database)).filter((row) => row.source === source);
    expect(new Set(rows.map(({ id }) => id))).toEqual(new Set(ownOf.map((line) => line['delivery'])));
    const counts = (await refusals(database)).filter((row) => row.source === source);
    expect(sum(counts.map((row) => Number(row.unauthorized) + Number(row.refused)))).toBe(
      REQUESTS / 2 - rows.length,
    );
  }

  // Another replica tells operators who it was.
  await using relay = await startTestService({ database, env });
  const viewer = await operators(relay, { role: 'viewer' });
  const sourcesOf = async (as: typeof viewer) => {
    const { body } = await as.get<{ items: { source: string; busiest_refused_addresses: object[] }[] }>(
      '/sources',
    );
    return new Map(body.items.map((item) => [item.source, item.busiest_refused_addresses]));
  };
  const seen = await sourcesOf(viewer);
  expect(seen.get('default')).toEqual([]);
  expect(seen.get('team-a')).toHaveLength(10);
  expect(seen.get('team-a')?.[0]).toEqual({ address: '203.0.113.7', count: (REQUESTS / 10) * 4 });
  expect(seen.get('unknown')?.slice(0, 2)).toEqual([
    { address: '203.0.113.7', count: (REQUESTS / 10) * 3 },
    { address: '203.0.113.9', count: REQUESTS / 10 },
  ]);
  const limited = await operators(relay, { role: 'viewer', sources: ['team-a'] });
  expect([...(await sourcesOf(limited)).keys()]).toEqual(['team-a']);
  const { screen } = await (await cliOf(relay, { role: 'viewer' })).onTerminal(['sources']);
  expect(screen).toMatch(/^unknown +203\.0\.113\.9 +200$/m);
});

test('the first answers of 503 have a log line, and the rest are counted by cause', async () => {
  const SENT = 300;
  const WAITING = 4;
  await using database = await createTestDatabase();
  let lines: readonly Record<string, unknown>[];
  let statuses: number[];
  let seconds: number;
  {
    await using relay = await startTestService({
      database,
      env: { WRITE_QUEUE_DELIVERIES: String(WAITING) },
    });
    lines = relay.log;
    await using holder = await openTransaction(database);
    await holder.query('lock table jobs in access exclusive mode');
    const startedMs = performance.now();
    const send = async () => (await deliver(relay.webhooks, completed(newJobId()))).status;
    const waiting = Array.from({ length: WAITING }, send);
    await expect
      .poll(async () => (await (await fetch(`${relay.intake}/readyz`)).json()) as object)
      .toMatchObject({ queue: 'full' });
    const others = await Promise.all(Array.from({ length: SENT }, send));
    await holder.rollback();
    statuses = [...others, ...(await Promise.all(waiting))];
    seconds = (performance.now() - startedMs) / 1_000;
  }

  const refused = statuses.filter((status) => status === 503).length;
  expect(refused).toBeGreaterThan(SENT / 2);
  const own = lines.filter(({ status }) => status === 503);
  const counted = lines.filter(({ msg }) => msg === 'more deliveries unavailable');
  expect(own[0]).toMatchObject({ msg: 'delivery', source: 'default', err: { code: 'full' } });
  const causes = new Set(own.map(({ err }) => (err as { code: string }).code));
  expect(own.length).toBeLessThanOrEqual(5 * causes.size * (seconds + 2));
  expect(counted.length).toBeLessThanOrEqual(seconds + 2);
  const told = counted.flatMap((line) => Object.values(line['causes'] as Record<string, number>));
  expect(own.length + sum(told)).toBe(refused);
});
