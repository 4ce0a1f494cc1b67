// Who is looked up in the database, and whose count a request is.

import { createServer } from 'node:http';
import { expect, test } from 'vitest';
import { createAccess } from '../../src/access/access.ts';
import { createLimits } from '../../src/access/limits.ts';
import { hashToken, newTokenValue } from '../../src/access/token-value.ts';
import { createGate, needsToken } from '../../src/http/api/gate.ts';
import { createExactApp, listen } from '../../src/http-ground.ts';
import type { DatabaseConnection } from '../../src/ledger/database.ts';
import { createTestLog } from '../support/service.ts';

const ADDRESS_FACTOR = 10;
const PATIENCE = { timeout: 10_000 };
const now = () => performance.now();

async function startGate({ requestsPerMinute }: { requestsPerMinute: number }) {
  const valid = new Map<string, object>();
  const lookups = { count: 0 };
  let mayAnswer = Promise.resolve();
  const execute = async (_statement: unknown, [hash]: unknown[]) => {
    lookups.count += 1;
    await mayAnswer;
    const row = valid.get((hash as Buffer).toString('hex'));
    return row === undefined ? [] : [row];
  };
  const { log, lines } = createTestLog();
  const access = createAccess({
    connection: { execute: execute as DatabaseConnection['execute'] },
    environment: 'test',
    now,
    log,
  });
  const limits = createLimits({ requestsPerMinute, now: Date.now });
  const app = createExactApp();
  app.use(createGate({ access, limits, now, log }), needsToken);
  app.get('/', (_request, response) => void response.status(200).end());
  const server = createServer(app);
  const port = await listen(server, { host: '127.0.0.1', port: 0 });
  return {
    lookups,
    lines,
    /** Look-ups take until what is returned is called. */
    hold: (): (() => void) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      mayAnswer = promise;
      return resolve;
    },
    makeToken: (id: string): string => {
      const value = newTokenValue('test');
      const value_hash = hashToken(value);
      const row = { id, environment: 'test', expires_at: null, value_hash, holds: true, use_is_news: false };
      valid.set(value_hash.toString('hex'), row);
      return value;
    },
    revoke: (value: string) => valid.delete(hashToken(value).toString('hex')),
    /** `200 29/30`: the status, and what remains of the limit. */
    ask: async (value: string): Promise<string> => {
      const { status, headers } = await fetch(`http://127.0.0.1:${port}/`, {
        headers: { authorization: `Bearer ${value}` },
      });
      return `${status} ${headers.get('x-ratelimit-remaining')}/${headers.get('x-ratelimit-limit')}`;
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}

const guess = () => newTokenValue('test');

test('of guesses that are made at once, no more are looked up than their address has left', async () => {
  await using gate = await startGate({ requestsPerMinute: 3 });
  const known = gate.makeToken('known');
  await gate.ask(known);
  const before = gate.lookups.count;
  const release = gate.hold();
  let refused = 0;

  const asking = Array.from({ length: 100 }, async () => {
    const answer = await gate.ask(guess());
    if (answer.startsWith('429')) refused += 1;
    return answer;
  });
  await expect.poll(() => gate.lookups.count - before + refused, PATIENCE).toBe(100);
  release();
  const answers = await Promise.all(asking);

  expect(gate.lookups.count - before).toBe(3 * ADDRESS_FACTOR);
  expect(answers.filter((answer) => answer.startsWith('401')).toSorted()).toEqual(
    Array.from({ length: 30 }, (_, left) => `401 ${left}/30`).toSorted(),
  );
  expect(answers.filter((answer) => answer === '429 0/30')).toHaveLength(70);
  // Whoever was let in from there before is let in again.
  expect(await gate.ask(known)).toBe('200 1/3');
});

test('of tokens that were never let in, 64 are looked up at a time, and the others are told to try again', async () => {
  await using gate = await startGate({ requestsPerMinute: 100 });
  const release = gate.hold();
  let refused = 0;

  const asking = Array.from({ length: 100 }, async () => {
    const answer = await gate.ask(guess());
    if (answer.startsWith('503')) refused += 1;
    return answer;
  });
  await expect.poll(() => [gate.lookups.count, refused], PATIENCE).toEqual([64, 36]);
  release();
  const answers = await Promise.all(asking);

  expect(answers.filter((answer) => answer.startsWith('401'))).toHaveLength(64);
  expect(await gate.ask(gate.makeToken('new'))).toBe('200 99/100');
});

test('a token that holds costs its address nothing, and shows its own limit', async () => {
  await using gate = await startGate({ requestsPerMinute: 2 });
  for (let left = 19; left > 1; left--) expect(await gate.ask(guess())).toBe(`401 ${left}/20`);

  for (const id of ['a', 'b', 'c']) expect(await gate.ask(gate.makeToken(id))).toBe('200 1/2');

  expect(await gate.ask(guess())).toBe('401 1/20');
  expect(await gate.ask(guess())).toBe('401 0/20');
  expect(await gate.ask(guess())).toBe('429 0/20');
  expect(await gate.ask(gate.makeToken('never seen before'))).toBe('429 0/20');
});

test('a token beyond its own limit is looked up no more, and its refusals have its name in the log', async () => {
  await using gate = await startGate({ requestsPerMinute: 3 });
  const value = gate.makeToken('busy');
  const answers = [];
  for (let count = 0; count < 6; count++) answers.push(await gate.ask(value));

  expect(answers).toEqual(['200 2/3', '200 1/3', '200 0/3', '429 0/3', '429 0/3', '429 0/3']);
  expect(gate.lookups.count).toBe(3);
  await expect.poll(() => gate.lines.length, PATIENCE).toBe(6);
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
