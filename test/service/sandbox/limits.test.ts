// service interface 8: every tier, both windows and the three headers, under bursts of concurrent requests.

import { afterEach, describe, expect, test, vi } from 'vitest';
import { createLimits } from '../../../src/sandbox/accounts/limits.ts';
import { TIER_NAMES, TIERS, type TierName, type Tiers } from '../../../src/sandbox/accounts/tiers.ts';
import { openRaw } from '../../support/raw-http.ts';
import { ask, newToken, type Reply, startTestSandbox, type TestSandbox } from '../../support/sandbox.ts';

const LIMITED = { error: 'rate_limited', message: 'rate limit exceeded' };

function tokenOf(on: TestSandbox, tier: TierName): string {
  const { accounts } = on.sandbox;
  return newToken(on.sandbox, { account: accounts.change(accounts.open(tier), { tier }) });
}

/** Bounded, since each request needs a socket. */
const AT_ONCE = 100;

/** Sends `count` requests, AT_ONCE at a time. */
async function burst(on: TestSandbox, token: string | undefined, count: number): Promise<Reply[]> {
  const replies: Reply[] = [];
  let left = count;
  const sendSome = async () => {
    while (left > 0) {
      left -= 1;
      replies.push(await ask(on.url, 'GET', '/me', { token }));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, sendSome));
  return replies;
}

/** A high burst limit, so that the hourly limit is reached first. */
function withBurst(burstPerMinute: number): Tiers {
  return {
    free: { ...TIERS.free, burstPerMinute },
    basic: { ...TIERS.basic, burstPerMinute },
    pro: { ...TIERS.pro, burstPerMinute },
    enterprise: { ...TIERS.enterprise, burstPerMinute },
  };
}

const statuses = (replies: readonly Reply[]) => {
  const counts: Record<number, number> = {};
  for (const { status } of replies) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
};

describe('the burst limit', () => {
  test.for([
    ['free', 10],
    ['basic', 50],
    ['pro', 200],
    ['enterprise', 1_000],
  ] as const)(
    '%s: of a burst exactly %i get through, and the rest are told when to come back',
    async ([tier, limit]) => {
      await using on = await startTestSandbox({ tiers: TIERS });
      const startedS = Date.now() / 1_000;
      const replies = await burst(on, tokenOf(on, tier), limit + 25);

      expect(statuses(replies)).toEqual({ 200: limit, 429: 25 });
      const served = replies.filter(({ status }) => status === 200);
      const remaining = served.map(({ rate }) => rate.remaining).toSorted((left, right) => left - right);
      expect(remaining).toEqual(Array.from({ length: limit }, (_, index) => index));
      for (const { rate, body, headers } of replies.filter(({ status }) => status === 429)) {
        expect(body).toEqual(LIMITED);
        expect(rate).toMatchObject({ limit, remaining: 0 });
        expect(rate.resetS).toBeGreaterThan(startedS);
        expect(rate.resetS).toBeLessThanOrEqual(Math.ceil(Date.now() / 1_000 + 60));
        const retryAfterS = Number(headers.get('retry-after'));
        expect(retryAfterS).toBeGreaterThanOrEqual(1);
        expect(retryAfterS).toBeLessThanOrEqual(61);
      }
    },
  );

  test('each token has its own, whatever account it belongs to', async () => {
    await using on = await startTestSandbox({ tiers: TIERS });
    expect(statuses(await burst(on, tokenOf(on, 'free'), 11))).toEqual({ 200: 10, 429: 1 });
    expect(statuses(await burst(on, tokenOf(on, 'free'), 11))).toEqual({ 200: 10, 429: 1 });
  });

  test('a request that fails counts as one that succeeds', async () => {
    await using on = await startTestSandbox({ tiers: TIERS });
    const token = tokenOf(on, 'free');
    for (const [method, path, status] of [
      ['GET', '/nothing', 404],
      ['PUT', '/me', 405],
      ['POST', '/conversion_jobs', 415],
      ['GET', '/conversion_jobs?limit=0', 422],
      ['GET', '/me', 200],
    ] as const) {
      expect(await on.call(method, path, { token })).toMatchObject({ status });
    }
    const { rate } = await on.call('GET', '/me', { token });
    expect(rate).toMatchObject({ limit: 10, remaining: 4 });
  });
});

describe('the hourly limit', () => {
  test.for([
    ['free', 100],
    ['basic', 1_000],
  ] as const)('%s: exactly %i requests get through', async ([tier, limit]) => {
    await using on = await startTestSandbox({ tiers: withBurst(5_000) });
    const replies = await burst(on, tokenOf(on, tier), limit + 10);
    expect(statuses(replies)).toEqual({ 200: limit, 429: 10 });
    const { rate, body } = replies.find(({ status }) => status === 429) as Reply;
    expect(body).toEqual(LIMITED);
    expect(rate).toMatchObject({ limit, remaining: 0 });
    expect(rate.resetS - Date.now() / 1_000).toBeGreaterThan(3_500);
    expect(rate.resetS - Date.now() / 1_000).toBeLessThanOrEqual(3_601);
  });

  test('enterprise has none', async () => {
    await using on = await startTestSandbox({ tiers: withBurst(20_000) });
    const replies = await burst(on, tokenOf(on, 'enterprise'), 1_500);
    expect(statuses(replies)).toEqual({ 200: 1_500 });
    expect(replies[0]?.rate.limit).toBe(20_000);
  });
});

describe('in time', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  test.for(TIER_NAMES)('%s: a minute gives the burst back, and the hour goes on', async (tier) => {
    vi.useFakeTimers({ now: 1_800_000_000_000 });
    const limits = createLimits({ tiers: TIERS, now: Date.now });
    const { burstPerMinute, requestsPerHour } = TIERS[tier];
    let served = 0;
    const minutes = requestsPerHour === null ? 3 : requestsPerHour / burstPerMinute;
    for (let minute = 0; minute < minutes; minute++) {
      for (let count = 0; count < burstPerMinute; count++) {
        const { exceeded } = await limits.spendToken('tok', tier);
        if (!exceeded) served += 1;
      }
      expect((await limits.spendToken('tok', tier)).exceeded).toBe(true);
      await vi.advanceTimersByTimeAsync(60_000);
    }
    expect(served).toBe(minutes * burstPerMinute);
    const after = await limits.spendToken('tok', tier);
    // Exactly the hour's limit is used up: requests over the burst limit did not count.
    expect(after).toMatchObject(
      requestsPerHour === null
        ? { exceeded: false, limit: burstPerMinute }
        : { exceeded: true, limit: requestsPerHour, remaining: 0 },
    );
    await vi.advanceTimersByTimeAsync(after.resetS * 1_000 - Date.now());
    expect((await limits.spendToken('tok', tier)).exceeded).toBe(false);
  });

  test('the headers tell of the window that is nearer to its end', async () => {
    vi.useFakeTimers({ now: 1_800_000_000_500 });
    const limits = createLimits({ tiers: TIERS, now: Date.now });
    expect(await limits.spendToken('tok', 'free')).toMatchObject({
      limit: 10,
      remaining: 9,
      resetS: 1_800_000_061, // rounded up, so that a client that waits until then is not early
    });
    for (let minute = 0; minute < 9; minute++) {
      await vi.advanceTimersByTimeAsync(60_000);
      for (let count = 0; count < 10; count++) await limits.spendToken('tok', 'free');
    }
    await vi.advanceTimersByTimeAsync(60_000);
    // 91 of 100 are used: after this request 8 remain in the hour, and 9 in the minute.
    expect(await limits.spendToken('tok', 'free')).toMatchObject({
      limit: 100,
      remaining: 8,
      resetS: 1_800_003_601,
    });
  });
});

describe('without a valid token', () => {
  test('the address has a limit, ten times that of the tier Free, and it is told', async () => {
    await using on = await startTestSandbox({ tiers: TIERS });
    const wrong = `cvs_live_${'x'.repeat(43)}`;
    const replies = [...(await burst(on, undefined, 60)), ...(await burst(on, wrong, 60))];
    expect(statuses(replies)).toEqual({ 401: 100, 429: 20 });
    expect(replies[0]?.rate.limit).toBe(100);
    expect(replies.find(({ status }) => status === 429)?.body).toEqual(LIMITED);
  });

  test('whoever has a valid one is not held back by others at the same address', async () => {
    await using on = await startTestSandbox({ tiers: TIERS });
    await burst(on, undefined, 110);
    expect(await on.call('GET', '/me')).toMatchObject({
      status: 200,
      rate: { limit: 1_000, remaining: 999 },
    });
  });

  test('even what is not HTTP is counted, and told the limits', async () => {
    await using on = await startTestSandbox({ tiers: TIERS });
    const broken = [
      ['400', 'hello there\r\n\r\n'],
      ['400', 'GET /v1/me HTTP/1.1\r\nHost: x\r\nrubbish\r\n\r\n'],
      ['400', 'GET /v1/me HTTP/1.1\r\n\r\n'],
      ['431', `GET /v1/me HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(20_000)}\r\n\r\n`],
      ['401', 'GET /v1/me HTTP/1.1\r\nHost: x\r\nExpect: something\r\n\r\n'],
      ['405', 'CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n'],
      ['408', 'GET /v1/me HTTP/1.1\r\nHost: x\r\n'],
    ] as const;
    for (const [index, [status, bytes]] of broken.entries()) {
      using connection = await openRaw(on.sandbox.port);
      connection.write(bytes);
      const [reply] = await connection.replies();
      expect({ bytes: bytes.slice(0, 40), ...reply }).toMatchObject({
        status: Number(status),
        headers: {
          'x-ratelimit-limit': '100',
          'x-ratelimit-remaining': String(99 - index),
          'x-ratelimit-reset': expect.stringMatching(/^\d+$/),
        },
        body: { error: expect.any(String), message: expect.any(String) },
      });
    }
  });
});
