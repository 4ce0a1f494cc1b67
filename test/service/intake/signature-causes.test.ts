// Why a signature failed: what the audit and the log say of each cause, and that the sender is told none of it.

import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { createTestDatabase } from '../../support/database.ts';
import { testWithService as it } from '../../support/fixtures.ts';
import { createFolder } from '../../support/folder.ts';
import { type DeliveryRow, deliveries, events } from '../../support/ledger.ts';
import { patience } from '../../support/patience.ts';
import { openRaw, rawPost } from '../../support/raw-http.ts';
import { secretOf } from '../../support/records.ts';
import { completed, newJobId, SECRET, sign } from '../../support/sender.ts';
import { startTestService, type TestService } from '../../support/service.ts';

// oxlint-disable vitest/no-standalone-expect -- `it` is vitest's test with a fixture, which the rule does not know

const TEAM_A = 'a-secret-of-team-a-of-enough-bytes';
const TEAM_B = 'a-secret-of-team-b-of-enough-bytes';
const NO_MATCH = 'the signature does not match';
const NOT_TRIED = 'the signature does not match (likely mistakes were not tried)';
const NO_SOURCE = 'no source of this name is set up';

const body = JSON.stringify(completed('job_forged'));
const valid = sign(body);
const hex = valid.slice('sha256='.length);
const base64 = Buffer.from(hex, 'hex').toString('base64');

type Sent = { readonly content: string; readonly headers: readonly string[]; readonly path?: string };

/** Byte for byte, since a client library would join or trim headers. @returns the answer without its time, and the audit row */
async function sendTraced(relay: TestService, { content, headers, path = '/webhooks' }: Sent) {
  const requestId = randomUUID();
  using connection = await openRaw(relay.service.port);
  const head = rawPost('', { 'Content-Length': String(content.length) }, `POST ${path} HTTP/1.1`).trimEnd();
  const all = [...headers, `X-Request-Id: ${requestId}`].map((line) => `${line}\r\n`).join('');
  connection.write(`${head}\r\n${all}\r\n${content}`);
  await connection.replies();
  const answer = connection.text().replace(/^Date: .*\r\n/m, '');
  const ownRows = async () =>
    (await deliveries(relay.database)).filter((row) => row.headers.includes(requestId));
  await expect.poll(ownRows).toHaveLength(1);
  const [row] = await ownRows();
  if (row === undefined) throw new Error('it was there a moment ago');
  return { answer, row };
}

/** Sends it until its likely mistakes were tried, which is left out under load. */
async function sendTried(relay: TestService, sent: Sent): Promise<DeliveryRow> {
  let row: DeliveryRow | undefined;
  await expect
    .poll(
      async () => {
        ({ row } = await sendTraced(relay, sent));
        return row.signed_by !== null || ![NO_MATCH, NOT_TRIED, NO_SOURCE].includes(String(row.reason));
      },
      { timeout: patience(25_000), interval: 600 },
    )
    .toBe(true);
  if (row === undefined) throw new Error('it was sent');
  return row;
}

const signature = (value: string) => `X-Service-Signature: ${value}`;

const IN_HEADERS: readonly (readonly [string, readonly string[], string])[] = [
  ['no header', [], 'no X-Service-Signature header'],
  [
    'the header of another service',
    [`X-Hub-Signature-256: ${valid}`],
    'no X-Service-Signature header, but X-Hub-Signature-256',
  ],
  ['an empty header', [signature('')], 'the X-Service-Signature header is empty'],
  ['bare hex', [signature(hex)], 'the signature has no "sha256=" before its digits'],
  ['upper-case hex', [signature(`sha256=${hex.toUpperCase()}`)], 'the hex digits are not in lower case'],
  ['base64', [signature(`sha256=${base64}`)], 'the signature is base64, not hex'],
  ['another algorithm', [signature(`sha1=${'a'.repeat(40)}`)], 'the signature does not begin with "sha256="'],
  ['a digit too few', [signature(valid.slice(0, -1))], 'the signature does not have 64 hex digits'],
  ['a space within', [signature(`sha256= ${hex}`)], 'the signature has white space in it'],
  ['quotes', [signature(`"${valid}"`)], 'the signature has quotes around it'],
  ['two headers', [signature(valid), signature(valid)], 'more than one X-Service-Signature value'],
  [
    'two faults of the form',
    [signature(valid.toUpperCase())],
    '"sha256=" is not in lower case; the hex digits are not in lower case',
  ],
  [
    'the form of another service',
    [signature(`t=1795349511,v1=${hex}`)],
    "the signature is in another service's form (t=…,v1=…)",
  ],
  ['two values in one', [signature(`${valid}, ${valid}`)], 'more than one X-Service-Signature value'],
];

it.for(IN_HEADERS)('%s is told in the audit and in the log', async ([, headers, reason], { relay }) => {
  const { row } = await sendTraced(relay, { content: body, headers });

  expect(row).toMatchObject({ outcome: 'unauthorized', reason, signed_by: null, secret_fingerprint: null });
  expect(relay.log).toContainEqual(
    expect.objectContaining({ delivery: row.id, outcome: 'unauthorized', reason }),
  );
  expect(JSON.stringify([row, relay.log])).not.toContain(hex.slice(8));
});

it.for([
  [
    'a newline that was signed and not sent',
    `${body}\n`,
    body,
    'signed with a final newline that the body does not have',
  ],
  [
    'a newline that was sent and not signed',
    body,
    `${body}\n`,
    'signed without the final newline of the body',
  ],
  [
    '\\r\\n that was sent and not signed',
    body,
    `${body}\r\n`,
    'signed without the final newline of the body',
  ],
  ['\\n in place of \\r\\n', `${body}\n`, `${body}\r\n`, 'signed with another final newline (\\n or \\r\\n)'],
] as const)(
  '%s is found by a trial, soon after the answer',
  async ([, signed, content, reason], { relay }) => {
    const row = await sendTried(relay, { content, headers: [signature(sign(signed))] });

    expect(row).toMatchObject({
      reason,
      signed_by: null,
      secret_fingerprint: null,
      body: null,
      body_sha256: null,
    });
    expect(relay.log).toContainEqual(expect.objectContaining({ delivery: row.id, reason }));
  },
);

it('a body that is too large for trials is told as such', async ({ relay }) => {
  const content = ' '.repeat(64 * 1024 + 1);
  const { row } = await sendTraced(relay, { content, headers: [signature(sign(`${content}\n`))] });

  expect(row).toMatchObject({ reason: NOT_TRIED, signed_by: null });
});

it('an unknown source is told as such', async ({ relay }) => {
  const { row } = await sendTraced(relay, {
    content: body,
    headers: [signature(valid.replace(/.$/, '0'))],
    path: '/webhooks/nobody',
  });

  expect(row).toMatchObject({ source: 'unknown', reason: NO_SOURCE });
});

it('the answers are the same for every cause, byte for byte', async ({ relay }) => {
  const answers = new Set<string>();
  for (const [, headers] of IN_HEADERS)
    answers.add((await sendTraced(relay, { content: body, headers })).answer);
  for (const content of [`${body}\n`, body.slice(1)]) {
    for (const path of ['/webhooks', '/webhooks/nobody']) {
      answers.add((await sendTraced(relay, { content, headers: [signature(valid)], path })).answer);
    }
  }

  expect([...answers]).toHaveLength(1);
  expect([...answers][0]).toMatch(/^HTTP\/1\.1 401 [^]*missing or invalid signature"}$/);
});

test('the secret of another source is found, and counts as no match of it', async () => {
  await using folder = await createFolder();
  await using database = await createTestDatabase();
  const file = await folder.write(
    'sources.json',
    JSON.stringify({ 'team-a': { secrets: [TEAM_A] }, 'team-b': { secrets: [TEAM_B] } }),
  );
  let lines: readonly Record<string, unknown>[];
  {
    await using relay = await startTestService({
      database,
      env: { SOURCES_FILE: file, REFUSED_ROWS_PER_MINUTE: '10000' },
    });
    lines = relay.log;
    const content = JSON.stringify(completed(newJobId()));
    const headers = [signature(sign(content, TEAM_B))];

    expect(await sendTried(relay, { content, headers, path: '/webhooks/team-a' })).toMatchObject({
      source: 'team-a',
      reason: NO_MATCH,
      signed_by: 'team-b',
    });
    expect(await sendTried(relay, { content, headers, path: '/webhooks/nobody' })).toMatchObject({
      source: 'unknown',
      reason: NO_SOURCE,
      signed_by: 'team-b',
    });
  }

  // The service has stopped: all that it counted is written.
  expect(await database.query('select * from secret_matches')).toEqual([]);
  expect(await events(database)).toEqual([]);
  expect((await deliveries(database)).filter((row) => row.secret_fingerprint !== null)).toEqual([]);
  const refused = lines.filter(({ outcome }) => outcome === 'unauthorized');
  expect(refused.length).toBeGreaterThanOrEqual(2);
  expect(JSON.stringify(refused)).not.toContain('team-b'); // readers of the log may be of one team
  expect(JSON.stringify(refused)).not.toContain(secretOf(TEAM_B).fingerprint);
});

test('in a flood two a second are tried, each has its row, and none is held back at the end', async () => {
  const SENT = 300;
  await using database = await createTestDatabase();
  const startedMs = performance.now();
  {
    await using relay = await startTestService({ database, env: { REFUSED_ROWS_PER_MINUTE: '10000' } });
    const headers = { 'x-service-signature': sign(`${body}\n`, SECRET) };
    const statuses = await Promise.all(
      Array.from(
        { length: SENT },
        async () => (await fetch(relay.webhooks, { method: 'POST', body, headers })).status,
      ),
    );
    expect(new Set(statuses)).toEqual(new Set([401]));
  }
  const seconds = (performance.now() - startedMs) / 1_000;

  const rows = await deliveries(database);
  expect(rows).toHaveLength(SENT);
  const tried = rows.filter(({ reason }) => reason !== NOT_TRIED);
  expect(tried.length).toBeLessThanOrEqual(2 * (seconds + 1));
});
