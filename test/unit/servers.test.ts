// The page on servers is held against the code: every figure and right that it states.

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { loadConfig } from '../../src/config.ts';
import { BrokerRefusalError } from '../../src/base/errors.ts';
import { MIGRATION_SETTINGS } from '../../src/ledger/schema/migration-session.ts';
import { CONTRACT_NAMES } from '../../src/ledger/sessions/session.ts';
import { NACKED_ATTEMPTS_MAX, retryDelayMs } from '../../src/relay/backoff.ts';
import { SLOW_IN_FLIGHT, SLOW_SHARE } from '../../src/relay/publisher.ts';
import { topologyOf } from '../../src/relay/topology.ts';

const page = readFileSync(new URL('../../docs/servers.md', import.meta.url), 'utf8');
const rabbitmq = page.slice(page.indexOf('## RabbitMQ'));
const { broker } = loadConfig({
  DATABASE_URL: 'postgres://localhost/x',
  AMQP_URL: 'amqp://localhost',
  SIGNING_SECRETS: 'x'.repeat(16),
});

test('the page on servers states what holds for RabbitMQ', () => {
  const { name, type, durable } = topologyOf(broker).exchange;
  for (const stated of [
    `\`AMQP_HEARTBEAT_S\`, ${broker.heartbeatS} s`,
    `\`AMQP_CONNECT_TIMEOUT_MS\`, ${broker.connectTimeoutMs / 1_000} s`,
    `\`AMQP_CONFIRM_DEADLINE_MS\`, ${broker.confirmDeadlineMs / 1_000} s; ${SLOW_SHARE === 0.25 ? 'a quarter' : 'another part'} of it`,
    `at most ${SLOW_IN_FLIGHT} at a time`,
    `${durable ? 'durable' : 'transient'}, type \`${type}\``,
    `For the exchange \`${name}\``,
    `'^${name.replace('.', '\\.')}$' '^(${name.replace('.', '\\.')}|amq\\.default)$' '^$'`,
  ])
    expect(rabbitmq).toContain(stated);
});

test('the page on servers states after which waits a nacked event is tried again', () => {
  const waitsS = Array.from(
    { length: NACKED_ATTEMPTS_MAX - 1 },
    (_, index) => retryDelayMs(index + 1, 0, 'nack') / 1_000,
  );
  expect(waitsS).toEqual([2, 8, 50, 600]);
  expect(NACKED_ATTEMPTS_MAX).toBe(5);
  expect(rabbitmq).toContain('tried five times, after 2 s, 8 s, 50 s and 10 min');
});

test('the page on servers names every code of a refused connection, and no other', () => {
  const codes: Record<BrokerRefusalError['code'], true> = {
    access_refused: true,
    limit_reached: true,
    wrong_port: true,
    tls_failed: true,
    broker_refused: true,
  };
  const [row = ''] = /^\| name and password.*$/m.exec(rabbitmq) ?? [];
  const named = [...row.matchAll(/`(\w+)`/g)].map(([, code]) => code);
  expect(new Set(named)).toEqual(new Set(Object.keys(codes)));
  expect(new BrokerRefusalError('wrong_port', 'x')).toMatchObject({ code: 'wrong_port' });
});

/** The names in the first column of the table of Postgres, by the first word of the second. */
function documented(how: 'set' | 'checked'): string[] {
  const part = page.slice(page.indexOf('## Postgres'), page.indexOf('### Sessions'));
  const rows = part.matchAll(/^\| (`[^|]*) \| (\w+)[^|]*\|/gm);
  return Array.from(rows)
    .filter(([, , kind]) => kind === how)
    .flatMap(([, names = '']) => Array.from(names.matchAll(/`(\w+)`/g), ([, name = '']) => name))
    .toSorted();
}

test.for([
  ['set', [...CONTRACT_NAMES.set, ...Object.keys(MIGRATION_SETTINGS)]],
  ['checked', CONTRACT_NAMES.checked],
] as const)('the page names each setting of Postgres that is %s', ([how, names]) => {
  expect(documented(how)).toEqual([...new Set(names)].toSorted());
});
