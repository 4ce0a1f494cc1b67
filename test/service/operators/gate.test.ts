// Who is looked up in the database, and whose count a request is.

import { createServer } from 'node:http';
import { expect, test } from 'vitest';
import { createAuthenticator } from '../../../src/operators/kernel/access/authenticator.ts';
import { createLimits } from '../../../src/operators/kernel/access/limits.ts';
import { hashToken, newTokenValue } from '../../../src/operators/kernel/access/token-value.ts';
import { createGate, needsToken } from '../../../src/operators/kernel/operation/gate.ts';
import { createLimitedLines } from '../../../src/http/limited-lines.ts';
import { createExactApp } from '../../../src/http/app.ts';
import { listen } from '../../../src/http/lifecycle.ts';
import type { DatabaseConnection, Statement } from '../../../src/ledger/sessions/database.ts';
import { createTestLog } from '../../support/test-log.ts';

const ADDRESS_FACTOR = 10;
const now = () => performance.now();

async function startGate({ requestsPerMinute }: { requestsPerMinute: number }) {
  const valid = new Map<string, object>();
  const lookups = { count: 0 };
  const refreshes = { count: 0 };
  const execute = async ({ name }: Statement, [asked]: unknown[]) => {
    if (name === 'valid tokens') {
      refreshes.count += 1;
      return [...valid.values()];
    }
    lookups.count += 1;
    const row = valid.get((asked as Buffer).toString('hex'));
    return row === undefined ? [] : [row];
  };
  const { log, lines } = createTestLog();
  const authenticator = createAuthenticator({
    connection: { execute: execute as DatabaseConnection['execute'] },
    environment: 'test',
    now,
    log,
  });
  const limits = createLimits({ requestsPerMinute, now: Date.now });
  const app = createExactApp();
  const walked = { hops: 0 };
  app.set('trust proxy', () => {
    walked.hops += 1;
    return true;
  });
  const strangerLines = createLimitedLines({ tellRest: (statuses) => log.info({ statuses }, 'more') });
  app.use(
    createGate({ authenticator, limits, connections: { trust: () => {} }, strangerLines, now, log }),
    needsToken,
  );
  app.get('/', (_request, response) => void response.status(200).end());
  const server = createServer(app);
  const port = await listen(server, { host: '127.0.0.1', port: 0 });
  return {
    lookups,
    refreshes,
    lines,
    walked,
    makeToken: (id: string): string => {
      const value = newTokenValue('test');
      const value_hash = hashToken(value);
      const row = {
        id,
        environment: 'test',
        expires_at: null,
        value_hash,
        is_valid: true,
        is_use_unnoted: false,
      };
      valid.set(value_hash.toString('hex'), row);
      return value;
    },
    revoke: (value: string) => valid.delete(hashToken(value).toString('hex')),
    /** `200 29/30`: the status, and what remains of the limit. */
    ask: async (value: string, more: Record<string, string> = {}): Promise<string> => {
      const { status, headers } = await fetch(`http://127.0.0.1:${port}/`, {
        headers: { authorization: `Bearer ${value}`, ...more },
      });
      return `${status} ${headers.get('x-ratelimit-remaining')}/${headers.get('x-ratelimit-limit')}`;
    },
    [Symbol.asyncDispose]: async () => {
      authenticator.close();
      strangerLines.close();
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}

const guess = () => newTokenValue('test');

test('guesses are looked up by nobody, share what is read for them, and spend their address’s count', async () => {
  await using gate = await startGate({ requestsPerMinute: 3 });

  const answers = await Promise.all(Array.from({ length: 100 }, () => gate.ask(guess())));

  expect(gate.lookups.count).toBe(0);
  expect(gate.refreshes.count).toBeLessThan(20);
  expect(answers.filter((answer) => answer.startsWith('401')).toSorted()).toEqual(
    Array.from({ length: 3 * ADDRESS_FACTOR }, (_, left) => `401 ${left}/30`).toSorted(),
  );
  expect(answers.filter((answer) => answer === '429 0/30')).toHaveLength(70);
  // Its own count is as it was, though it comes from there and was never seen before.
  expect(await gate.ask(gate.makeToken('known'))).toBe('200 2/3');
});

test('the way that a request took is walked once', async () => {
  await using gate = await startGate({ requestsPerMinute: 3 });

  expect(await gate.ask(guess(), { 'X-Forwarded-For': '203.0.113.7, 10.0.0.1' })).toBe('401 29/30');

  await expect.poll(() => gate.lines).toMatchObject([{ remote: '203.0.113.7' }]);
  expect(gate.walked.hops).toBe(2); // the peer and the right-most; the farthest need not be asked about
});

test('a token that holds costs its address nothing, and shows its own limit', async () => {
  await using gate = await startGate({ requestsPerMinute: 2 });
  for (let left = 19; left > 1; left--) expect(await gate.ask('nonsense')).toBe(`401 ${left}/20`);

  for (const id of ['a', 'b', 'c']) expect(await gate.ask(gate.makeToken(id))).toBe('200 1/2');

  expect(await gate.ask(guess())).toBe('401 1/20');
  expect(await gate.ask(guess())).toBe('401 0/20');
  expect(await gate.ask(guess())).toBe('429 0/20');
  expect(await gate.ask(gate.makeToken('never seen before'))).toBe('200 1/2');
});

test('a token beyond its own limit is looked up no more, and its refusals have its name in the log', async () => {
  await using gate = await startGate({ requestsPerMinute: 3 });
  const value = gate.makeToken('busy');
  const answers = [];
  for (let count = 0; count < 6; count++) answers.push(await gate.ask(value));

  expect(answers).toEqual(['200 2/3', '200 1/3', '200 0/3', '429 0/3', '429 0/3', '429 0/3']);
  expect(gate.lookups.count).toBe(3);
  await expect.poll(() => gate.lines.length).toBe(6);
  expect(gate.lines.map(({ token }) => token)).toEqual(Array(6).fill('busy'));
});

test('a token that was let in and revoked since is a stranger’s, whose address pays', async () => {
  await using gate = await startGate({ requestsPerMinute: 3 });
  const value = gate.makeToken('revoked soon');
  expect(await gate.ask(value)).toBe('200 2/3');

  gate.revoke(value);

  const answers = [];
  for (let count = 0; count < 4; count++) answers.push(await gate.ask(value));
  expect(answers).toEqual(['401 29/30', '401 28/30', '401 27/30', '401 26/30']);
});

test('requests without a token have a few lines a second in the log, and the rest is counted', async () => {
  const gate = await startGate({ requestsPerMinute: 1_000 });
  const started = now();
  await Promise.all(Array.from({ length: 60 }, () => gate.ask('none of ours')));
  await gate[Symbol.asyncDispose]();

  const lines = gate.lines.filter(({ msg }) => msg === 'operators request');
  const more = gate.lines
    .flatMap(({ msg, statuses }) => (msg === 'more' ? Object.values(statuses as Record<string, number>) : []))
    .reduce((sum, count) => sum + count, 0);
  expect(lines.length + more).toBe(60);
  expect(lines.length).toBeLessThanOrEqual(5 * Math.ceil((now() - started) / 1_000 + 1));
});
