// The metrics of a fresh process: what is there from the first scrape, and whether Prometheus finds fault with it.

import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { GC_KINDS } from '../../src/base/closed-sets.ts';
import { COUNTERS, GAUGES, HISTOGRAMS, type Labels } from '../../src/base/metric-table.ts';
import { TABLES } from '../../src/ledger/index.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { startReplica, type Replica } from '../support/replica.ts';
import { fetchAfresh } from '../support/requests.ts';
import { completed, deliver, newJobId } from '../support/sender.ts';
import { waitFor } from '../support/waits.ts';

const PROMTOOL = process.env['TEST_PROMTOOL'];

/** Gauges of prom-client, which has named them like counters. */
const NOT_OURS = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
];

/** At the start, where a slow server lets a statement time out. */
const MAY_RISE = /^tallyhook_database_(sessions_refused|refusals)_total$/;

type Family = { readonly type: string; readonly samples: Map<string, number> };

let database: TestDatabase;
let replica: Replica;
let text: string;
let families: ReadonlyMap<string, Family>;

beforeAll(async () => {
  database = await createTestDatabase();
  replica = await startReplica({ databaseUrl: database.url });
  text = await scrape();
  families = familiesOf(text);
});
afterAll(async () => {
  await replica[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

const scrape = async () => (await fetchAfresh(`${replica.operators}/metrics`)).text();

/** By name. Of a histogram the counts are taken. Labels are written in the order of their names. */
function familiesOf(content: string): Map<string, Family> {
  const found = new Map<string, Family>();
  for (const [, name = '', type = ''] of content.matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
    found.set(name, { type, samples: new Map() });
  }
  for (const [, name = '', labels = '', value] of content.matchAll(/^([a-z_]+)(?:\{(.*)\})? (\S+)$/gm)) {
    const family = found.get(name) ?? found.get(name.replace(/_count$/, ''));
    family?.samples.set(labels.split(',').toSorted().join(), Number(value));
  }
  return found;
}

/** Every combination of these values, as `familiesOf` writes them. */
const seriesOf = (labels: Labels): string[] =>
  Object.entries(labels)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .reduce<string[][]>(
      (series, [label, values]) =>
        series.flatMap((one) => valuesOf(values).map((value) => [...one, `${label}="${value}"`])),
      [[]],
    )
    .map((one) => one.join());

function valuesOf(values: Labels[string]): readonly string[] {
  if (typeof values !== 'string') return values;
  return values === 'any' ? ['default', 'unknown'] : ['default'];
}

const DESCRIBED: Readonly<Record<string, { readonly help?: string; readonly labels?: Labels }>> = {
  ...COUNTERS,
  ...HISTOGRAMS,
  nodejs_gc_duration_seconds: { labels: { kind: GC_KINDS } },
};

describe('the first scrape', () => {
  test('has every counter and histogram at each value of its labels, and at no other', () => {
    const counting = [...families].filter(([, { type }]) => type === 'counter' || type === 'histogram');
    expect(counting.map(([name]) => name)).toEqual(
      expect.arrayContaining(Object.keys({ ...COUNTERS, ...HISTOGRAMS })),
    );
    for (const [name, { samples }] of counting) {
      const expected = seriesOf(DESCRIBED[name]?.labels ?? {});
      expect([name, [...samples.keys()].toSorted()]).toEqual([name, expected.toSorted()]);
    }
  });

  test('has them at 0', () => {
    const counted = [...families].filter(
      ([name, { type }]) =>
        name.startsWith('tallyhook_') && (type === 'counter' || type === 'histogram') && !MAY_RISE.test(name),
    );
    const risen = counted.flatMap(([name, { samples }]) =>
      [...samples].filter(([, value]) => value !== 0).map(([labels]) => `${name}{${labels}}`),
    );
    expect(risen).toEqual([]);
  });

  test('has every gauge, and a value for each table', async () => {
    // A look that took too long is NaN: the next scrape has another one.
    const { gauges, ...found } = await waitFor(async () => {
      const scraped = familiesOf(await scrape());
      const all = [...scraped].filter(
        ([name, { type }]) => name.startsWith('tallyhook_') && type === 'gauge',
      );
      const unknown = all.flatMap(([name, { samples }]) =>
        [...samples.values()].filter(Number.isNaN).map(() => name),
      );
      expect(unknown).toEqual(['tallyhook_source_last_verified_seconds']); // nobody has delivered yet
      return {
        gauges: all.map(([name]) => name),
        tables: [...(scraped.get('tallyhook_table_bytes')?.samples.keys() ?? [])],
        ahead: [...(scraped.get('tallyhook_partitions_ahead')?.samples.values() ?? [])],
      };
    });
    expect(gauges.toSorted()).toEqual(Object.keys(GAUGES).toSorted());
    expect(found.tables.toSorted()).toEqual(TABLES.map((table) => `table="${table}"`).toSorted());
    expect(found.ahead).toEqual([7, 7, 7]);
  });

  test.skipIf(!PROMTOOL)('follows the conventions of Prometheus', () => {
    const { stderr, stdout } = spawnSync(PROMTOOL ?? '', ['check', 'metrics'], {
      input: text,
      encoding: 'utf8',
    });
    const faults = `${stdout}${stderr}`.split('\n').filter((line) => line !== '');
    expect(faults.filter((line) => !NOT_OURS.some((name) => line.startsWith(`${name} `)))).toEqual([]);
    expect(faults).toHaveLength(NOT_OURS.length);
  });
});

test('a write that Postgres refuses is counted by kind', async () => {
  const counted = () => replica.metric('tallyhook_database_refusals_total{kind="disk_full"}');
  expect(await counted()).toBe(0);
  await database.query(`
    create function full_disk() returns trigger language plpgsql as
      $$ begin raise exception 'no space left on device' using errcode = 'disk_full'; end $$;
    create trigger full_disk before insert on events for each row execute function full_disk()`);
  expect((await deliver(replica.webhooks, completed(newJobId()))).status).toBe(503);
  await expect.poll(counted).toBeGreaterThan(0);
});
