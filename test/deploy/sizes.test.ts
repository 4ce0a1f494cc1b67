// What a delivery adds to each table, as docs/deploy.md has it for whoever reckons with it. Measured anew with real deliveries.

import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bodyOf } from '../../bench/load/notifications.ts';
import { listen, newExchange } from '../support/bus.ts';
import type { TestDatabase } from '../support/database.ts';
import { patience } from '../support/patience.ts';
import { sign } from '../support/sender.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

/** The figures of the page are of 20,000: with fewer, a page of 8 KiB that is not full yet counts more. */
const DELIVERIES = 3_000;
const CONNECTIONS = 64;
/** Between two runs the batches of the relay differ, and how far each page of an index is filled. */
const TOLERANCE = 0.2;

const TABLES = ['deliveries', 'publication_batches', 'events', 'jobs'] as const;

/** The rows of the page's table. Repeats come last: they free space in `events` and `jobs`, which later events would take. */
const CASES = [
  { name: 'accepted, 0.5 KiB', bodyBytes: 512 },
  { name: 'accepted, 4 KiB', bodyBytes: 4_096 },
  { name: 'duplicate, 0.5 KiB', bodyBytes: 512 },
] as const;

let service: TestService;
let bus: AsyncDisposable;
beforeAll(async () => {
  const exchange = newExchange();
  bus = await listen(exchange);
  service = await startTestService({ exchange, env: { LOG_LEVEL: 'warn' } });
});
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  await bus[Symbol.asyncDispose]();
});

const page = readFileSync(new URL('../../docs/deploy.md', import.meta.url), 'utf8');

function figuresOf(name: string): number[] {
  const row = page.split('\n').find((line) => line.startsWith(`| ${name} |`));
  if (row === undefined) throw new Error(`docs/deploy.md has no row “${name}”`);
  return row
    .split('|')
    .slice(2, 2 + TABLES.length)
    .map((cell) => Number(cell.replaceAll(',', '')));
}

/** Posts them all over some connections. @throws Error for another answer than 2xx */
async function send(run: string, bodyBytes: number): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  let next = 0;
  const sender = async () => {
    for (let number = next++; number < DELIVERIES; number = next++) {
      const status = await post(agent, bodyOf(run, number, bodyBytes));
      if (status !== 202 && status !== 200) throw new Error(`answered with ${status}`);
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, sender));
  agent.destroy();
}

function post(agent: Agent, body: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const outgoing = request(service.webhooks, {
      agent,
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        'User-Agent': 'conversion-service',
        'X-Service-Signature': sign(body),
      },
    });
    outgoing.on('error', reject);
    outgoing.on('response', (answer) => {
      answer.resume().on('end', () => resolve(answer.statusCode));
    });
    outgoing.end(body);
  });
}

/** In the order of TABLES, with indexes and TOAST, after a vacuum. */
async function sizesOf({ query }: TestDatabase): Promise<number[]> {
  await query('vacuum (analyze)');
  const rows = await query<{ bytes: number }>(
    `select sum(pg_total_relation_size(oid))::float8 as bytes from unnest($1::text[]) with ordinality as t (name, place), lateral (
       select name::regclass::oid as oid union all select inhrelid from pg_inherits where inhparent = name::regclass
     ) as part group by place order by place`,
    [TABLES],
  );
  return rows.map(({ bytes }) => bytes);
}

const untilPublished = () =>
  until(
    'all events are published',
    async () =>
      (await service.database.query('select 1 from outbox_batches limit 1')).length === 0 ? true : undefined,
    { limitMs: patience(60_000) },
  );

test.each(CASES)(
  '$name: a delivery adds as many bytes to each table as the page says',
  async ({ name, bodyBytes }) => {
    const run = `r${bodyBytes}`;
    const before = await sizesOf(service.database);
    await send(run, bodyBytes);
    await untilPublished();
    const measured = (await sizesOf(service.database)).map((bytes, at) =>
      Math.round((bytes - (before[at] ?? 0)) / DELIVERIES),
    );

    const said = figuresOf(name);
    measured.forEach((bytes, at) => {
      const figure = said[at] ?? NaN;
      if (Number.isNaN(figure)) return; // the page has no figure
      const where = `${TABLES[at]}: ${bytes} bytes, and the page says ${figure}`;
      expect.soft(Math.abs(bytes - figure), where).toBeLessThanOrEqual(Math.max(40, figure * TOLERANCE));
    });
  },
  patience(120_000),
);
