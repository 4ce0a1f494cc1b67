// What `tallyhook doctor` makes of what it saw.

import { describe, expect, test } from 'vitest';
import { type Contact, judgeContacts } from '../../../src/tools/doctor/address.ts';
import { timeoutsFor } from '../../../src/tools/doctor/checks.ts';
import { explain, isMalformed } from '../../../src/tools/doctor/explain.ts';
import { failed, ok, skipped, warning } from '../../../src/tools/doctor/finding.ts';
import { linesOf, sumOf } from '../../../src/tools/doctor/output.ts';
import type { Answer } from '../../../src/tools/doctor/probe.ts';
import { judgeTimes } from '../../../src/tools/doctor/answer-time.ts';
import { checkTls, judgeTls } from '../../../src/tools/doctor/tls.ts';
import { withoutColours as paint } from '../../../src/terminal/io.ts';

const NOW = Date.parse('2026-01-15T10:00:00Z');
const DAY_MS = 24 * 60 * 60 * 1_000;

const judgedAt = (url: string, ...contacts: readonly Contact[]) => judgeContacts(contacts, new URL(url));

describe('addresses', () => {
  const alive = { address: '203.0.113.5' };
  const dead = { address: '203.0.113.6', reason: 'nothing listens at port 443' };
  const unrouted = {
    address: '2001:db8::1',
    reason: 'this machine has no way to port 443',
    isUnrouted: true,
  };

  test('that all connect are fine; one that does not is a warning, none is a failure', () => {
    const url = 'https://hooks.example.com/webhooks';
    expect(judgedAt(url, alive)).toMatchObject({ result: 'ok', found: 'connects to 203.0.113.5' });
    expect(judgedAt(url, alive, dead)).toMatchObject({
      result: 'warning',
      found: '203.0.113.6: nothing listens at port 443',
      details: { addresses: ['203.0.113.5', '203.0.113.6'] },
    });
    expect(judgedAt(url, dead, unrouted)).toMatchObject({ result: 'failed' });
  });

  test('that only this machine cannot reach, or of localhost, do not count', () => {
    expect(judgedAt('https://hooks.example.com/webhooks', alive, unrouted)).toMatchObject({ result: 'ok' });
    expect(judgedAt('http://localhost/webhooks', { address: '127.0.0.1' }, dead)).toMatchObject({
      result: 'ok',
    });
  });
});

const tlsOf = (url: string) =>
  checkTls({ url: new URL(url), timeoutMs: 1, signal: new AbortController().signal });

test('plain http is a warning, except on this machine', async () => {
  expect(await tlsOf('http://hooks.example.com/webhooks')).toMatchObject({
    result: 'warning',
    mend: expect.stringContaining('certificate'),
  });
  for (const host of ['localhost:8080', '127.0.0.1:8080', '[::1]:8080']) {
    expect(await tlsOf(`http://${host}/webhooks`)).toMatchObject({ result: 'ok' });
  }
});

describe('a certificate', () => {
  const seen = {
    protocol: 'TLSv1.3',
    fault: undefined,
    names: 'hooks.example.com, *.example.org',
    fromMs: NOW - DAY_MS,
    toMs: NOW + 14 * DAY_MS,
  };
  const judged = (change: Partial<typeof seen> | { fault: string }) =>
    judgeTls({ ...seen, ...change }, { host: 'hooks.example.net', nowMs: NOW });

  test('that is valid for 14 days more is fine; for less, a warning', () => {
    expect(judged({})).toMatchObject({
      result: 'ok',
      found: 'TLSv1.3, the certificate is valid for 14 days more, until 2026-01-29',
      details: { protocol: 'TLSv1.3', days_left: 14 },
    });
    expect(judged({ toMs: seen.toMs - 1 })).toMatchObject({
      result: 'warning',
      found: 'the certificate is valid for 13 days more, until 2026-01-29',
      mend: expect.stringContaining('renew it'),
    });
  });

  test.for([
    ['CERT_HAS_EXPIRED', 'has ended on 2026-01-29', 'renew it'],
    ['CERT_NOT_YET_VALID', 'is valid from 2026-01-14 on only', 'clocks'],
    [
      'ERR_TLS_CERT_ALTNAME_INVALID',
      'is not for hooks.example.net, but for hooks.example.com, *.example.org',
      'get one for hooks.example.net',
    ],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'signed by itself', 'NODE_EXTRA_CA_CERTS'],
    ['SELF_SIGNED_CERT_IN_CHAIN', 'by an authority of your own', 'NODE_EXTRA_CA_CERTS'],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'is not known here', 'fullchain.pem'],
    ['CERT_REVOKED', 'is not trusted (CERT_REVOKED)', 'public authority'],
  ] as const)('with the fault %s is said to be wrong, and how to mend it', ([fault, found, mend]) => {
    expect(judged({ fault })).toMatchObject({
      result: 'failed',
      found: expect.stringContaining(found),
      mend: expect.stringContaining(mend),
    });
  });
});

describe('times', () => {
  test('up to a tenth of what a sender waits are fine', () => {
    expect(judgeTimes([30, 10, 20, 1_000, 25], 10_000)).toMatchObject({
      result: 'ok',
      found: 'the median of 5 answers took 25 ms, the slowest 1.0 s. Senders wait 10.0 s',
      details: { median_ms: 25, slowest_ms: 1_000 },
    });
  });

  test('are the same in words and in values', () => {
    expect(judgeTimes([4.6, 4.6, 7.9], 10_000)).toMatchObject({
      found: expect.stringContaining('took 4 ms, the slowest 7 ms'),
      details: { median_ms: 4, slowest_ms: 7 },
    });
  });

  test('beyond it are a warning, even one of them', () => {
    expect(judgeTimes([10, 10, 10, 10, 1_001], 10_000)).toMatchObject({ result: 'warning' });
    expect(judgeTimes([101], 1_000)).toMatchObject({ result: 'warning' });
  });
});

const given = (status: number, body: string | object, headers: Record<string, string> = {}): Answer => ({
  kind: 'answer',
  status,
  headers,
  text: typeof body === 'string' ? body : JSON.stringify(body),
  fields: typeof body === 'string' ? {} : (body as Record<string, unknown>),
  ms: 1,
});

describe('an answer', () => {
  test('is Tallyhook’s by its status and its words, and not by one of them', () => {
    expect(isMalformed(given(400, { error: 'malformed', message: 'x' }))).toBe(true);
    expect(isMalformed(given(400, '<h1>400 Bad Request</h1>'))).toBe(false);
    expect(isMalformed(given(422, { error: 'malformed', message: 'x' }))).toBe(false);
    expect(isMalformed({ kind: 'none', reason: 'x' })).toBe(false);
  });

  test.for([
    [
      given(301, '', { location: 'https://other.example/\u001b[2J' }),
      'https://other.example/',
      'give senders',
    ],
    [given(307, ''), 'a redirect to another address', 'give senders'],
    [
      given(404, { error: 'not_found', message: 'x' }),
      'Tallyhook has nothing at this path',
      '/webhooks/<source>',
    ],
    [given(404, 'File not found'), '"File not found", which Tallyhook does not answer', 'path on unchanged'],
    [given(401, 'Log in'), '"Log in"', 'without a sign-in at the proxy'],
    [given(403, '<h1>Forbidden</h1>'), 'which Tallyhook does not answer', 'firewall'],
    [given(413, '<h1>Too large</h1>'), 'which Tallyhook does not answer', 'client_max_body_size'],
    [given(503, { error: 'unavailable', message: 'x' }), 'cannot record deliveries now', 'Postgres'],
    [given(503, ''), 'no text, which Tallyhook does not answer', 'the service runs'],
    [given(502, 'Bad Gateway'), '"Bad Gateway"', 'the service runs'],
    [given(200, 'ok'), '"ok"', 'another service'],
    [given(418, 'x'.repeat(500)), 'x'.repeat(40), 'another service has this address'],
    [{ kind: 'none', reason: 'it hung up' }, 'no answer to a body: it hung up', 'firewall'],
  ] as const)('%j is explained', ([answer, found, mend]) => {
    const fault = explain(answer, 'a body');

    expect(fault).toEqual({ found: expect.stringContaining(found), mend: expect.stringContaining(mend) });
    expect(fault.found.length).toBeLessThan(200);
    expect(fault.found).not.toContain('\u001b');
  });
});

test('no answer after others is no question of the address', () => {
  const fault = explain({ kind: 'none', reason: 'it was late', isReached: true }, 'a body');

  expect(fault).toEqual({
    found: 'no answer to a body: it was late',
    mend: expect.stringContaining('slow'),
  });
  expect(fault.mend).not.toContain('firewall');
});

test('the checks have time for each request of each secret', () => {
  const secrets = Array.from({ length: 3 }, () => ({ name: 'x', secret: 'x', raw: 'x' }));

  expect(timeoutsFor(secrets) - timeoutsFor(secrets.slice(1))).toBe(2);
  expect(timeoutsFor(secrets.slice(2))).toBe(15); // as docs/senders.md says
});

test('a finding is a line with its result as a word, and what to do stands below it', () => {
  const fault = { found: 'a certificate for other names', mend: 'get another one\nor use another name' };

  expect(linesOf(ok('tls', 'TLSv1.3'), { columns: 80, paint })).toBe('ok       tls         TLSv1.3');
  expect(linesOf(failed('tls', fault), { columns: 60, paint }).split('\n')).toEqual([
    'failed   tls         a certificate for other names',
    '                     to mend it: get another one',
    '                     or use another name',
  ]);
  expect(
    linesOf(failed('tls', fault), { columns: 40, paint })
      .split('\n')
      .map((line) => line.length > 42),
  ).not.toContain(true);
});

test('the sum counts each result, and names what was not checked', () => {
  const fault = { found: 'x', mend: 'y' };

  expect(sumOf([ok('tls', 'x'), ok('address', 'x')])).toBe('2 ok');
  expect(
    sumOf([
      ok('address', 'x'),
      warning('tls', fault),
      warning('time', fault),
      failed('size', fault),
      skipped('event', 'x'),
      skipped('redelivery', 'x'),
    ]),
  ).toBe('1 ok, 2 warnings, 1 failed; not checked: event, redelivery');
});
