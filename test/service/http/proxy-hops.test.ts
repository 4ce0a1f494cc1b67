// Whom a request counts as, by its peer and what it says of the way that it took.

import { createServer } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTrustedProxies, ownOrigins, senderOf } from '../../../src/http/proxies.ts';
import { parseRange } from '../../../src/base/net/ip-range.ts';
import { createExactApp } from '../../../src/http/app.ts';
import { listen } from '../../../src/http/lifecycle.ts';
import { askFrom } from '../../support/requests.ts';

const TRUSTED = ['127.0.0.2', '10.0.0.0/8', '2001:db8:aaaa::/48'];
const PROXY = '127.0.0.2';
const STRANGER = '127.0.0.1';

async function startApp(host: string) {
  const app = createExactApp();
  app.set('trust proxy', createTrustedProxies(TRUSTED).isTrusted);
  app.get('/', (request, response) => {
    response.json({ sender: senderOf(request), own: ownOrigins(request) });
  });
  const server = createServer(app);
  const port = await listen(server, { host, port: 0 });
  const ask = async (from: string, headers: Record<string, string | readonly string[]>) => {
    const { body } = await askFrom(`http://127.0.0.1:${port}/`, { from, headers });
    return body as { sender: string; own: string[] };
  };
  return {
    ask,
    [Symbol.asyncDispose]: async () => void (await new Promise((closed) => server.close(closed))),
  };
}

let app: Awaited<ReturnType<typeof startApp>>;
beforeAll(async () => {
  app = await startApp('127.0.0.1');
});
afterAll(async () => {
  await app[Symbol.asyncDispose]();
});

/** `…, 10.0.0.2, 10.0.0.1` */
const hops = (count: number) =>
  Array.from({ length: count }, (_, index) => `10.0.0.${count - index}`).join(', ');

const senderFrom = async (from: string, ...lines: string[]) =>
  (await app.ask(from, { 'X-Forwarded-For': lines })).sender;

const ownOf = async (headers: Record<string, string>) =>
  (await app.ask(PROXY, { Host: 'internal:8081', ...headers })).own;

describe('through a trusted proxy', () => {
  test.each([
    ['one hop', '203.0.113.7', '203.0.113.7'],
    ['the right-most untrusted hop', '198.51.100.1, 203.0.113.7, 10.1.2.3', '203.0.113.7'],
    ['not what the sender wrote to the left', '10.9.9.9, 127.0.0.2, 203.0.113.7', '203.0.113.7'],
    ['the left-most hop, where all are trusted', '10.0.0.1, 10.0.0.2', '10.0.0.1'],
    ['IPv6 in its usual spelling', '2001:DB8:0:0::7, 2001:db8:aaaa::1', '2001:db8::7'],
    ['IPv4 in the form of IPv6', '198.51.100.1, ::ffff:203.0.113.7, ::ffff:10.0.0.1', '203.0.113.7'],
    ['hops with ports', '203.0.113.7:4711, [2001:db8:aaaa::1]:443, 10.0.0.1:1', '203.0.113.7'],
    ['IPv6 in brackets', '[2001:db8::7]', '2001:db8::7'],
    ['empty hops are none', '203.0.113.7,, 10.0.0.1 , ', '203.0.113.7'],
    ['no hop at all', ' , ', PROXY],
    ['garbage alone', 'unknown', PROXY],
    ['garbage behind good hops', '198.51.100.1, unknown, 10.0.0.2, 10.0.0.1', '10.0.0.2'],
    ['quotes, which are of another header', '198.51.100.1, "203.0.113.7"', PROXY],
    ['numbers that only look like an address', '198.51.100.1, 203.0.113.256, 10.1', PROXY],
    ['a port that is none', '203.0.113.7:http', PROXY],
    ['a zone is left out', `fe80::1%${'x'.repeat(1_000)}`, 'fe80::1'],
    ['no more than 16 proxies in a row', `203.0.113.7, ${hops(20)}`, '10.0.0.16'],
    ['as many as that', `203.0.113.7, ${hops(15)}`, '203.0.113.7'],
    ['padding', `${'198.51.100.1, '.repeat(500)}203.0.113.7, 10.0.0.1`, '203.0.113.7'],
  ])('%s', async (_what, header, sender) => {
    expect(await senderFrom(PROXY, header)).toBe(sender);
  });

  test('several lines are one list', async () => {
    expect(await senderFrom(PROXY, '198.51.100.1', '203.0.113.7', '10.0.0.1')).toBe('203.0.113.7');
  });

  test('its word for scheme and host is taken, where it gives it', async () => {
    expect(await ownOf({})).toEqual(['http://internal:8081', 'https://internal:8081']);
    expect(await ownOf({ 'X-Forwarded-Proto': 'https' })).toEqual(['https://internal:8081']);
    expect(await ownOf({ 'X-Forwarded-Proto': 'https', 'X-Forwarded-Host': 'Relay.Example' })).toEqual([
      'https://relay.example',
    ]);
  });
});

test('what anybody else says is passed over', async () => {
  expect(await senderFrom(STRANGER, '203.0.113.7')).toBe(STRANGER);
  expect(await senderFrom(STRANGER, '203.0.113.7, 127.0.0.2', '10.0.0.1')).toBe(STRANGER);
  const told = { Host: 'internal', 'X-Forwarded-Proto': 'ftp', 'X-Forwarded-Host': 'relay.example' };
  expect((await app.ask(STRANGER, told)).own).toEqual(['http://internal', 'https://internal']);
});

test('a peer that a socket of both families names in the form of IPv6 is the same peer', async () => {
  await using both = await startApp('::');
  const headers = { 'X-Forwarded-For': '203.0.113.7' };

  expect((await both.ask(PROXY, headers)).sender).toBe('203.0.113.7');
  expect((await both.ask(STRANGER, headers)).sender).toBe(STRANGER);
});

test('without ranges nobody is trusted', () => {
  const { isTrusted, trustsEverybody } = createTrustedProxies([]);

  expect([isTrusted('127.0.0.1'), isTrusted('::1'), isTrusted(undefined), trustsEverybody]).toEqual(
    Array(4).fill(false),
  );
});

test('a range of everybody is told from others, and counts for its own family', () => {
  const all = createTrustedProxies(['0.0.0.0/0']);

  expect([all.trustsEverybody, all.isTrusted('192.0.2.1'), all.isTrusted('2001:db8::1')]).toEqual([
    true,
    true,
    false,
  ]);
  expect(createTrustedProxies(['0.0.0.0/1']).trustsEverybody).toBe(false);
  expect(createTrustedProxies(['::ffff:10.0.0.0/104']).isTrusted('10.1.2.3')).toBe(true);
});

test('ranges are addresses and CIDR, and nothing that must be guessed at', () => {
  for (const text of ['10.0.0.7', '10.0.0.0/8', '::1', '2001:db8::/32', '0.0.0.0/0', '::/0']) {
    expect([text, parseRange(text)]).not.toEqual([text, undefined]);
  }
  for (const text of [
    '',
    '10',
    '1/8',
    '10.0.0.0/33',
    '10.0.0.0/',
    '10.0.0.0/255.0.0.0',
    '010.0.0.1',
    'proxy',
    '::/129',
  ]) {
    expect([text, parseRange(text)]).toEqual([text, undefined]);
  }
});
