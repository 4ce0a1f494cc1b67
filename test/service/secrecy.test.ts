// No secret leaves the process: every log line, answer, message and column is searched for the ones we planted.

import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { listen, newExchange } from '../support/bus.ts';
import { createFolder } from '../support/folder.ts';
import { startProxy } from '../support/proxy.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { openRaw, rawPost } from '../support/raw-http.ts';
import { completed, deliver, newJobId, sign } from '../support/sender.ts';
import { startTestService } from '../support/service.ts';

const PLANTED = 'pLaNtEd-0123456789';

const sources = (secret: string) => JSON.stringify({ 'team-a': { secrets: [secret] } });

/** Every row of every table, as text; bytea columns are hexadecimal in it. */
async function everything(database: TestDatabase): Promise<string> {
  const tables = await database.query<{ name: string }>(
    `select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'`,
  );
  const rows = await Promise.all(
    tables.map(({ name }) => database.query<{ row: string }>(`select t::text as row from ${name} t`)),
  );
  return rows
    .flat()
    .map(({ row }) => row)
    .join('\n');
}

function expectSecret(text: string): void {
  expect(text).not.toContain(PLANTED);
  expect(text).not.toContain(Buffer.from(PLANTED).toString('hex'));
  expect(text).not.toContain(Buffer.from(PLANTED).toString('base64').replace(/=+$/, ''));
}

test('a planted secret is found in no log line, answer, bus message or database column', async () => {
  const exchange = newExchange();
  await using folder = await createFolder();
  await using bus = await listen(exchange);
  await using database = await createTestDatabase();
  await using proxy = await startProxy(database.url, { defaultPort: 5432 });
  const file = await folder.write('sources.json', sources(`${PLANTED}-of-team-a`));
  const secret = `${PLANTED}-of-default`;
  const answers: string[] = [];
  await using relay = await startTestService({
    database,
    exchange,
    env: { SIGNING_SECRETS: `${PLANTED}-rotated,${secret}`, SOURCES_FILE: file, DATABASE_URL: proxy.url },
  });
  const keep = async (url: string, init: RequestInit = {}) => {
    const response = await fetch(url, init);
    const text = await response.text();
    answers.push(JSON.stringify([...response.headers]), text);
    return response.status;
  };
  const post = (body: string, headers: Record<string, string>, path = '') =>
    keep(`${relay.webhooks}${path}`, { method: 'POST', body, headers });
  const jobId = newJobId();
  const body = JSON.stringify(completed(jobId));
  const signed = { 'x-service-signature': sign(body, secret) };

  // What senders may do by mistake: secrets in headers, in the query, in the signature, in a body of no one.
  expect(
    await post(
      body,
      {
        ...signed,
        authorization: `Bearer ${PLANTED}`,
        cookie: PLANTED,
        'x-api-key': PLANTED,
        'x-service-secret': PLANTED,
      },
      `?secret=${PLANTED}`,
    ),
  ).toBe(202);
  expect(await post(body, signed)).toBe(200);
  expect(await post(body, { 'x-service-signature': PLANTED })).toBe(401);
  expect(await post(body, { 'x-service-signature': `sha256=${PLANTED}` })).toBe(401);
  expect(await post(`{"secret":"${PLANTED}"}`, signed)).toBe(401);
  expect(await post(body, { 'x-service-signature': sign(body, `${PLANTED}-of-team-a`) }, '/team-a')).toBe(
    202,
  );
  expect(await post(PLANTED.repeat(20_000), signed)).toBe(413);
  expect(await keep(relay.webhooks, { method: 'PUT', body: PLANTED })).toBe(405);
  {
    using connection = await openRaw(relay.service.port);
    connection.write(`${PLANTED} / HTTP/1.1\r\n${PLANTED}\r\n\r\n`);
    await connection.closed;
    answers.push(connection.text());
  }
  {
    using connection = await openRaw(relay.service.port);
    connection.write(rawPost(PLANTED, { 'Content-Length': '100', 'X-Service-Signature': PLANTED }));
    connection.end();
    await connection.closed;
    answers.push(connection.text());
  }
  for (const broken of [
    sources('short'),
    `{"team-a": "${PLANTED}`,
    JSON.stringify({ [`${PLANTED}!`]: PLANTED }),
  ]) {
    await folder.write('sources.json', broken);
    await relay.service.reload();
  }
  for (const url of [`${relay.operators}/metrics`, `${relay.operators}/readyz`, `${relay.intake}/readyz`])
    await keep(url);
  proxy.cut();
  proxy.refuse();
  expect(await post(JSON.stringify(completed(newJobId())), { 'x-service-signature': PLANTED })).toBe(401);
  const unlucky = JSON.stringify(completed(newJobId()));
  expect(await post(unlucky, { 'x-service-signature': sign(unlucky, secret) })).toBe(503);
  proxy.heal();
  await bus.received(2);
  await relay.service.stop();

  expect(relay.log.length).toBeGreaterThan(10);
  expectSecret(JSON.stringify(relay.log));
  expectSecret(answers.join('\n'));
  expectSecret(bus.messages.map(({ text, properties }) => text + JSON.stringify(properties)).join('\n'));
  const rows = await everything(database);
  expect(rows).toContain(jobId);
  expectSecret(rows);
  // No signature either: with its body it would be an oracle for guesses.
  for (const text of [rows, JSON.stringify(relay.log), answers.join('\n')]) {
    expect(text).not.toContain(signed['x-service-signature'].slice('sha256='.length));
  }
});

/** A login of its own with this password, gone with the test. */
async function createRole(
  database: TestDatabase,
  password: string,
): Promise<AsyncDisposable & { name: string }> {
  const name = `test_${randomBytes(6).toString('hex')}`;
  await database.query(`create role ${name} login superuser password '${password}'`);
  return {
    name,
    [Symbol.asyncDispose]: async () => {
      await database.query(`drop owned by ${name}`);
      await database.query(`drop role ${name}`);
    },
  };
}

test('a message that could quote a value, or a password in a URL, is not logged when Postgres cannot be reached', async () => {
  await using database = await createTestDatabase();
  await using proxy = await startProxy(database.url, { defaultPort: 5432 });
  await using role = await createRole(database, PLANTED);
  const url = new URL(proxy.url);
  url.username = role.name;
  url.password = PLANTED;
  await using relay = await startTestService({
    database,
    env: { DATABASE_URL: url.href, AMQP_URL: `amqp://guest:${PLANTED}@127.0.0.1:1` },
  });

  proxy.refuse();
  proxy.cut();
  expect(await deliver(relay.webhooks, completed(newJobId()))).toMatchObject({ status: 503 });
  proxy.heal();
  await expect.poll(() => JSON.stringify(relay.log)).toContain('broker cannot be reached');

  expectSecret(JSON.stringify(relay.log));
});
