// Many clients without a secret, beside a sender that has one and connects from another address. Whatever they do, the sender
// gets only 2xx, and what they cost stays within the limits.

import { afterEach, describe, expect, test } from 'vitest';
import { createTestDatabase } from '../support/database.ts';
import { type Flood, type FloodReport, startFlood } from '../support/floods.ts';
import { type Load, startLoad } from '../support/load.ts';
import { patience } from '../support/patience.ts';
import { type Replica, startReplica } from '../support/replica.ts';
import { fetchAfresh } from '../support/requests.ts';

const FLOODERS = ['127.0.1.1', '127.0.1.2', '127.0.1.3', '127.0.1.4'];
const SENDER = '127.0.0.2';

let scenes: AsyncDisposableStack[] = [];
afterEach(async () => {
  for (const scene of scenes) await scene.disposeAsync();
  scenes = [];
});

/** So many deliveries of each sender are answered before the flood. */
const BEFORE = 3;

/** A replica with one sender that keeps its connection and one that makes a new one for each delivery. */
async function startScene(env: Record<string, string> = {}): Promise<{ replica: Replica; loads: Load[] }> {
  const scene = new AsyncDisposableStack();
  scenes.push(scene);
  const database = scene.use(await createTestDatabase());
  const replica = scene.use(await startReplica({ databaseUrl: database.url, env }));
  const loads = [true, false].map((keepAlive) =>
    scene.use(
      startLoad(() => [replica.webhooks], { senders: 1, keepAlive, pauseMs: 20, localAddress: SENDER }),
    ),
  );
  await Promise.all(loads.map((load) => load.reached(BEFORE)));
  return { replica, loads };
}

const portOf = (url: string) => Number(new URL(url).port);

/** Runs a flood to its end, and calls `check` repeatedly while it lasts. */
async function endure(flood: Flood, check: () => Promise<void> = async () => {}): Promise<FloodReport> {
  await using running = startFlood(flood);
  let isOver = false;
  const over = running.report.finally(() => {
    isOver = true;
  });
  over.catch(() => {}); // `check` may throw first
  while (!isOver) {
    await check();
    await Promise.race([over, new Promise((resolve) => setTimeout(resolve, 100))]);
  }
  return over;
}

/** Every delivery got a 2xx, those during the flood too. */
async function expectServed(loads: readonly Load[]): Promise<void> {
  for (const load of loads) {
    await load.stop();
    expect(load.answers.length).toBeGreaterThan(BEFORE);
    expect(load.answers.filter(({ status }) => status === undefined || status >= 300)).toEqual([]);
  }
}

async function expectLive({ operators }: Replica): Promise<void> {
  expect((await fetchAfresh(`${operators}/livez`)).status).toBe(200);
}

describe('requests pipelined without an end', () => {
  test.for(['intake', 'operators'] as const)(
    'on 200 connections to the %s stop no sender, and at most 16 of a connection are answered',
    async (face) => {
      const { replica, loads } = await startScene();

      const report = await endure(
        {
          kind: 'pipelining',
          port: portOf(replica[face]),
          addresses: FLOODERS,
          connections: 200,
          reopenAfterMs: 10,
          forMs: 2_500,
        },
        () => expectLive(replica),
      );

      await expectServed(loads);
      const answered = Object.values(report.answers).reduce((sum, count) => sum + count, 0);
      // A connection that is ended may lose answers that it has not read.
      expect(answered).toBeLessThanOrEqual(16 * report.opened);
      expect(
        await replica.metric(`tallyhook_connections_ended_total{face="${face}",reason="pipelined"}`),
      ).toBeGreaterThan(0);
    },
  );
});

describe('connections that bring nothing', () => {
  test.for(['idle', 'silent'] as const)(
    'more %s ones than allowed keep no sender out, and the limit holds',
    async (kind) => {
      const limits = { MAX_CONNECTIONS: '300', MAX_CONNECTIONS_PER_ADDRESS: '100' };
      const { replica, loads } = await startScene(limits);
      let most = 0;
      const startedMs = performance.now();

      const report = await endure(
        {
          kind,
          port: portOf(replica.intake),
          addresses: FLOODERS,
          connections: 600,
          reopenAfterMs: 200,
          forMs: patience(2_500),
        },
        async () => {
          most = Math.max(most, await replica.metric('tallyhook_connections'));
          expect(await replica.readiness()).toMatchObject({ status: 200, body: { connections: 'room' } });
        },
      );

      await expectServed(loads);
      expect(report.opened).toBeGreaterThan(300);
      expect(most).toBeGreaterThan(250);
      expect(most).toBeLessThanOrEqual(300);
      const warnings = () =>
        replica.log.filter(({ msg }) => String(msg).startsWith('connections were turned away'));
      // The last one comes up to a second after what it counts.
      await expect.poll(() => warnings().length).toBeGreaterThan(0);
      // One a second, and not one a connection.
      expect(warnings().length).toBeLessThanOrEqual(1 + (performance.now() - startedMs) / 1_000);
    },
  );

  test('all of the operators’ connections taken keep no operator out', async () => {
    const { replica, loads } = await startScene();

    await endure(
      {
        kind: 'idle',
        port: portOf(replica.operators),
        addresses: FLOODERS,
        connections: 600,
        reopenAfterMs: 200,
        forMs: 2_500,
      },
      async () => {
        await expectLive(replica);
        expect(await replica.metric('tallyhook_operator_connections')).toBeLessThanOrEqual(256);
      },
    );

    await expectServed(loads);
  });
});

test('requests that stall on more connections than allowed keep no sender out', async () => {
  const limits = { MAX_CONNECTIONS: '300', MAX_CONNECTIONS_PER_ADDRESS: '100' };
  const { replica, loads } = await startScene(limits);

  const report = await endure(
    {
      kind: 'unsigned',
      port: portOf(replica.intake),
      addresses: FLOODERS,
      connections: 600,
      reopenAfterMs: 200,
      bodyBytes: 1_024,
      forMs: 2_500,
    },
    async () => {
      expect(await replica.metric('tallyhook_connections')).toBeLessThanOrEqual(300);
      expect(await replica.readiness()).toMatchObject({ status: 200, body: { connections: 'room' } });
    },
  );

  await expectServed(loads);
  expect(report.opened).toBeGreaterThan(600);
});

describe('bodies that stall before their last byte', () => {
  const BUDGET_BYTES = 8 * 1024 * 1024;
  const env = { UNVERIFIED_BODY_BYTES: String(BUDGET_BYTES), ANSWER_DEADLINE_MS: '2000' };

  test('with a well-formed signature, they are held within the budget, and beyond it answered with 503', async () => {
    const { replica, loads } = await startScene(env);
    let most = 0;

    const report = await endure(
      {
        kind: 'claimed',
        port: portOf(replica.intake),
        addresses: FLOODERS,
        connections: 200, // six times the budget
        reopenAfterMs: 200,
        forMs: 20_000,
        untilAnswers: 100,
      },
      async () => {
        most = Math.max(most, await replica.metric('tallyhook_unverified_body_bytes'));
      },
    );

    await expectServed(loads);
    expect(most).toBeGreaterThan(BUDGET_BYTES / 2);
    expect(most).toBeLessThanOrEqual(BUDGET_BYTES);
    expect(report.answers['503']).toBeGreaterThan(0);
    expect(Object.keys(report.answers).filter((status) => status !== '503' && status !== '408')).toEqual([]);
  });

  test('without one, they are not held, and are answered when their time is over', async () => {
    const { replica, loads } = await startScene(env);

    const report = await endure(
      {
        kind: 'unsigned',
        port: portOf(replica.intake),
        addresses: FLOODERS,
        connections: 200,
        forMs: 20_000,
        untilAnswers: 200,
      },
      async () => {
        // The sender's own bodies are read for a moment.
        expect(await replica.metric('tallyhook_unverified_body_bytes')).toBeLessThan(16 * 1024);
      },
    );

    await expectServed(loads);
    expect(report.answers).toEqual({ 408: 200 });
  });
});
