// Somebody guesses tokens from an address that operators use too.

import { expect, test } from 'vitest';
import { createAuthenticator } from '../../src/operators/kernel/access/authenticator.ts';
import { newTokenValue } from '../../src/operators/kernel/access/token-value.ts';
import { connectDatabase, type DatabaseConnection } from '../../src/ledger/sessions/database.ts';
import { createTestDatabase } from '../support/database.ts';
import { newToken } from '../support/operators.ts';
import { patience } from '../support/patience.ts';
import { openRaw } from '../support/raw-http.ts';
import { createTestLog, startTestService, type TestService } from '../support/service.ts';

/** 6,400 guesses in all. Fewer connections than the port accepts, and on each no more requests at once than are started. */
const CONNECTIONS = 100;
const ROUNDS = 4;
const ON_EACH = 16;
const PATIENCE = { timeout: patience(20_000), interval: 100 };
const path = '/api/v1/openapi.json';

const guess = () => newTokenValue('test');
const rawGuess = () => `GET ${path} HTTP/1.1\r\nHost: relay.test\r\nAuthorization: Bearer ${guess()}\r\n\r\n`;

async function ask(relay: TestService, value: string): Promise<number> {
  const { status } = await fetch(`${relay.operators}${path}`, {
    headers: { authorization: `Bearer ${value}` },
  });
  return status;
}

/** @returns how many answers had each status */
async function flood(relay: TestService): Promise<Record<string, number>> {
  const { port } = new URL(relay.operators);
  const count: Record<string, number> = {};
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      using connection = await openRaw(Number(port));
      const statuses = () => Array.from(connection.text().matchAll(/HTTP\/1\.1 (\d+)/g), ([, code]) => code);
      for (let round = 1; round <= ROUNDS; round++) {
        connection.write(Array.from({ length: ON_EACH }, rawGuess).join(''));
        await expect.poll(() => statuses().length, PATIENCE).toBe(round * ON_EACH);
      }
      for (const code of statuses()) count[String(code)] = (count[String(code)] ?? 0) + 1;
    }),
  );
  return count;
}

test('after 6,400 guesses from an address a valid token from there still works', async () => {
  await using relay = await startTestService({ env: { API_REQUESTS_PER_MINUTE: '600' } });
  const { value: unused } = await newToken(relay.database);

  const [count, during] = await Promise.all([flood(relay), ask(relay, unused)]);

  expect(during).toBe(200);
  expect(await ask(relay, guess())).toBe(429);
  const { token, value: later } = await newToken(relay.database);
  expect(await ask(relay, later)).toBe(200);
  expect(count).toEqual({ 401: 6_000, 429: 400 });
  await relay.database.query('update tokens set revoked_at = now() where id = $1', [token.id]);
  expect(await ask(relay, later)).toBe(429); // now it is a guess, from an address that has used up its limit
  expect(await ask(relay, unused)).toBe(200);
});

test('a guess costs no query of its own, and a token is known as soon as it is made', async () => {
  await using database = await createTestDatabase();
  const { log } = createTestLog();
  const connection = connectDatabase({
    url: database.url,
    name: 'test',
    connections: 2,
    statementTimeoutMs: 5_000,
    lockTimeoutMs: 5_000,
    queryTimeoutMs: 6_000,
    log,
  });
  let queries = 0;
  const execute: DatabaseConnection['execute'] = (statement, values) => {
    queries += 1;
    return connection.execute(statement, values);
  };
  const authenticator = createAuthenticator({
    connection: { execute },
    environment: 'test',
    now: () => performance.now(),
    log,
  });
  try {
    const startMs = performance.now();
    let made = 0;
    for (let round = 0; round < 8; round++) {
      const guesses = Array.from({ length: 800 }, () => authenticator.recognize(`Bearer ${guess()}`));
      const { value } = await newToken(database);
      const found = await authenticator.recognize(`Bearer ${value}`);
      if (found.kind === 'known') made += 1;
      for (const { kind } of await Promise.all(guesses)) expect(kind).toBe('invalid');
    }
    expect(made).toBe(8);
    // Ten at once, and one more each second.
    expect(queries).toBeLessThanOrEqual(12 + Math.ceil((performance.now() - startMs) / 1_000));
  } finally {
    authenticator.close();
    await connection.close();
  }
});
