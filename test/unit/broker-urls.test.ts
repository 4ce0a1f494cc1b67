// The URLs of a broker's nodes: how they are read, and whose turn it is.

import { expect, test } from 'vitest';
import { areEncrypted, brokerUrlsForm, createTurns } from '../../src/base/amqp/broker-urls.ts';
import { settle } from '../../src/subscriber/settings.ts';

const faultOf = (text: string) => brokerUrlsForm('unset').safeParse(text).error?.issues[0]?.message;

test.each([
  'amqp://a',
  'amqp://user:pass,word@a:5672/vhost',
  'amqp://a,amqp://b',
  'amqp://u:p@a:5672/%2F , amqps://u:p@b',
  'amqp://u:p@a/v,AMQP://u:p@b/v',
  'amqp://u:p@a/with%2Ccomma%20and%3B?heartbeat=5',
  'amqp://u:p,q:r@a/v',
  'amqp://u:p@q,r@a/v',
  'amqp://u:p;q@[::1]:5672/v\n',
])('%s is taken', (text) => {
  expect(faultOf(text)).toBeUndefined();
});

test.each([
  ['http://a', 'must be a URL that starts with amqp:// or amqps://'],
  ['amqp://a,http://b', 'names several hosts in one URL'],
  ['amqp://a,b/vhost', 'names several hosts in one URL'],
  ['amqp://a,amqp://b,', 'names several hosts in one URL'],
  ['amqp://u:p@a;b/v', 'names several hosts in one URL'],
  ['amqp://u:p@a:5672,u:p@b:5672/v', 'names several hosts in one URL'],
  ['amqp://u:p@a , u:p@b/v', 'names several hosts in one URL'],
  ['amqp://u:p@a u:p@b/v', 'names several hosts in one URL'],
  ['amqp://u:p@a;u:p@[::1]/v', 'names several hosts in one URL'],
  ['amqp://a,u:p@b/v', 'names several hosts in one URL'],
  ['amqp://a:5672,u:p@b/v', 'names several hosts in one URL'],
  ['amqp://u:p@a/v,b/v', 'behind a host'],
  ['amqp://a/v,localhost:5673', 'behind a host'],
  ['amqp://a/v,http://b', 'behind a host'],
  ['amqp://u:p@a/v;amqp://u:p@b/v', 'behind a host'],
  ['amqp://u:p@a/v|amqp://u:p@b/v', 'behind a host'],
  ['amqp://a/v amqp://b/v', 'behind a host'],
  ['amqp://a/v\namqp://b/v', 'behind a host'],
  ['amqp://a/v?heartbeat=5;amqp://b/v', 'behind a host'],
  ['amqp://a/v,,amqp://b/v', 'behind a host'],
  ['amqp://a/v,', 'behind a host'],
  ['amqp:u:p@a/v', 'must be a URL that starts with amqp:// or amqps://'],
  ['a,amqp://b', 'must be URLs that start with amqp:// or amqps://, with commas between them'],
  [Array.from({ length: 17 }, () => 'amqp://a').join(','), 'has more than 16 URLs'],
])('%s is refused, with what is wrong', (text, fault) => {
  expect(faultOf(text)).toContain(fault);
});

test.each([
  'amqp://account:planted@node,other/v',
  'amqp://account:planted@node,account:planted@other/v',
  'amqp://account:planted@node/v;amqp://account:planted@other/v',
])('%s is refused without its words, in the options of a subscriber, too', (url) => {
  expect(faultOf(url)).toMatch(/^(has|names) /);
  expect(faultOf(url)).not.toMatch(/account|planted|other/);
  const subscribe = () => settle({ url, queue: 'a', on: { completed: () => {} } });
  expect(subscribe).toThrow(/write one whole URL for each/);
  expect(subscribe).not.toThrow(/planted/);
});

test('an account that hides no host is read as it was', () => {
  const turns = createTurns('amqp://u:p,q@a/v , AMQPS://u:p@b/v', () => 0);
  expect([turns.next(), turns.next()]).toEqual(['amqp://u:p,q@a/v', 'AMQPS://u:p@b/v']);
});

test('each has its turn, in random order', () => {
  const places = [0.9, 0.1, 0.5];
  const turns = createTurns('amqp://a,amqp://b,amqp://c', () => places.shift() ?? 0);
  expect(turns.count).toBe(3);
  expect(Array.from({ length: 4 }, turns.next)).toEqual(['amqp://b', 'amqp://c', 'amqp://a', 'amqp://b']);
});

test('the connections of a node that goes spread over all others', () => {
  const nexts = Array.from({ length: 200 }, () => {
    const turns = createTurns('amqp://a,amqp://b,amqp://c');
    while (turns.next() !== 'amqp://a');
    return turns.next();
  });
  const toB = nexts.filter((url) => url === 'amqp://b').length;
  expect(nexts).not.toContain('amqp://a');
  expect(toB).toBeGreaterThan(40);
  expect(toB).toBeLessThan(160);
});

test('certificates need all of them to be encrypted', () => {
  expect(areEncrypted('amqps://a,amqps://b')).toBe(true);
  expect(areEncrypted('amqps://a,amqp://b')).toBe(false);
});
