// The OpenAPI document of the intake, held against the answers of a running service: each status that it declares is seen here,
// and no answer is seen that it does not declare.

import { Validator } from '@seriousme/openapi-schema-validator';
import { expect, test } from 'vitest';
import { lockWaits } from '../../support/ledger.ts';
import { type Document, openApiOf } from '../../support/openapi.ts';
import { openRaw, rawPost } from '../../support/raw-http.ts';
import { completed, deliver, failed, newJobId, progress, sign } from '../../support/sender.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { openSession } from '../../support/transaction.ts';

/** One of the cases lasts so long. */
const DEADLINE_MS = 2_000;
const BODY_LIMIT_BYTES = 2_048;

type Seen = { readonly status: number; readonly headers: Headers; readonly body: Record<string, unknown> };
type Case = readonly [string, readonly [number, string, Send]];
type Send = (relay: TestService, jobId: string) => Promise<Seen>;

const sent =
  (
    content: (jobId: string) => Parameters<typeof deliver>[1],
    options?: Parameters<typeof deliver>[2],
    path = '',
  ) =>
  (relay: TestService, jobId: string) =>
    deliver(`${relay.webhooks}${path}`, content(jobId), options);

/** Bytes that no client would send. */
const raw =
  (bytes: (jobId: string) => string, { ends = false } = {}): Send =>
  async ({ service }, jobId) => {
    using connection = await openRaw(service.port);
    connection.write(bytes(jobId));
    if (ends) connection.end();
    const [reply] = await connection.replies();
    if (reply === undefined) throw new Error('no answer came');
    return { ...reply, headers: new Headers(reply.headers) };
  };

const signed = (body: string, more: Record<string, string>) =>
  rawPost(body, { 'X-Service-Signature': sign(body), ...more });

/** The second of two. */
const twice =
  (first: (jobId: string) => object, second = first): Send =>
  async (relay, jobId) => {
    await deliver(relay.webhooks, JSON.stringify(first(jobId)));
    return deliver(relay.webhooks, JSON.stringify(second(jobId)));
  };

/** A delivery whose write waits for a row that somebody else holds. */
const heldUp: Send = async (relay, jobId) => {
  await deliver(relay.webhooks, progress(jobId, 1));
  await using session = await openSession(relay.database);
  await session.query('begin');
  await session.query('select from jobs where job_id = $1 for update', [jobId]);
  const held = deliver(relay.webhooks, completed(jobId));
  await expect.poll(() => lockWaits(relay.database)).not.toEqual([]);
  return await held; // the session ends with this function
};

const HELD_UP = 'a ledger that is held up';

/** Status, `outcome` or `error`, and how to get it. */
const CASES: Readonly<Record<string, readonly [number, string, Send]>> = {
  'a new completion': [202, 'accepted', sent((jobId) => completed(jobId))],
  'a new failure': [202, 'accepted', sent((jobId) => failed(jobId))],
  'new progress with unknown fields': [202, 'accepted', sent((jobId) => progress(jobId, 5, { new: 1 }))],
  'an unknown status': [202, 'quarantined', sent((job_id) => ({ job_id, status: 'exploded' }))],
  'a field that breaks the form': [202, 'quarantined', sent((id) => completed(id, { cost_cents: '1' }))],
  'the same again': [200, 'duplicate', twice((jobId) => completed(jobId))],
  'the same with other content': [
    200,
    'conflict',
    twice(
      (jobId) => completed(jobId),
      (jobId) => completed(jobId, { cost_cents: 1 }),
    ),
  ],
  'no JSON': [400, 'malformed', sent(() => 'hello')],
  'no job': [400, 'malformed', sent(() => '{"status":"completed"}')],
  'half a body': [400, 'bad_request', raw(() => signed('{}', { 'Content-Length': '10' }), { ends: true })],
  'no HTTP': [400, 'bad_request', raw(() => 'hello there\r\n\r\n')],
  'a path with a broken escape': [400, 'bad_request', sent(() => '{}', {}, '/%zz')],
  'no signature': [401, 'unauthorized', sent(completed, { headers: { 'x-service-signature': undefined } })],
  'a wrong signature': [401, 'unauthorized', sent(completed, { secret: 'another-secret-of-enough-bytes' })],
  'an unknown source': [401, 'unauthorized', sent(completed, {}, '/nobody')],
  'a slash at the end': [404, 'not_found', sent(completed, {}, '/')],
  'another method': [405, 'method_not_allowed', sent(completed, { method: 'PUT' })],
  'a tunnel': [405, 'method_not_allowed', raw(() => 'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n')],
  'a body that never comes': [408, 'request_timeout', raw(() => signed('', { 'Content-Length': '10' }))],
  'a large body': [413, 'payload_too_large', sent(() => 'x'.repeat(BODY_LIMIT_BYTES + 1))],
  'an encoded body': [
    415,
    'unsupported_media_type',
    sent(completed, { headers: { 'content-encoding': 'gzip' } }),
  ],
  'another expectation': [417, 'expectation_failed', raw(() => signed('{}', { Expect: 'a miracle' }))],
  'a large head': [431, 'headers_too_large', raw(() => signed('{}', { 'X-Large': 'x'.repeat(20_000) }))],
  [HELD_UP]: [503, 'unavailable', heldUp],
};

test('every answer that the document declares is given, and no other', async () => {
  await using relay = await startTestService({
    env: { ANSWER_DEADLINE_MS: String(DEADLINE_MS), BODY_LIMIT_BYTES: String(BODY_LIMIT_BYTES) },
  });
  const served = await fetch(`${relay.operators}/api/v1/openapi.intake.json`);
  const document = (await served.json()) as Document & { info: { description: string } };
  const { faultsOf, operations } = openApiOf(document);

  const give = async ([name, [, , send]]: Case) => ({ name, ...(await send(relay, newJobId())) });
  const cases = Object.entries(CASES);
  // A write that is held up would hold up all that are in its batch.
  const quick = await Promise.all(cases.filter(([name]) => name !== HELD_UP).map(give));
  const late = await Promise.all(cases.filter(([name]) => name === HELD_UP).map(give));
  const seen = [...quick, ...late];

  expect(await new Validator().validate(structuredClone(document))).toMatchObject({ valid: true });
  expect(document.openapi).toBe('3.1.0');
  expect(operations).toEqual(['POST /webhooks', 'POST /webhooks/{source}']);
  expect(seen.map(({ name, status, body }) => [name, status, body['outcome'] ?? body['error']])).toEqual(
    cases.map(([name, [status, word]]) => [name, status, word]),
  );
  for (const operation of operations) {
    expect(seen.flatMap((answer) => faultsOf(operation, answer))).toEqual([]);
    const { responses } = document.paths[operation.slice('POST '.length)]?.['post'] ?? { responses: {} };
    const declared = Object.keys(responses).filter((status) => status !== 'default');
    expect(new Set(seen.map(({ status }) => String(status)))).toEqual(new Set(declared));
  }
  const headerOf = (name: string, header: string) =>
    seen.find((answer) => answer.name === name)?.headers.get(header);
  expect(headerOf(HELD_UP, 'retry-after')).toBe('2');
  expect(headerOf('another method', 'allow')).toBe('POST');
  expect(document.info.description).toContain('| the body | 2 KiB | 413 |');
  expect(document.info.description).toContain('| time for the answer | 2 s | 503 |');
});
