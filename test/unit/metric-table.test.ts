// docs/observability.md has all metrics of a fresh registry as a table. After a change: npm test -- test/unit/metric-table.test.ts --update

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { GAUGES } from '../../src/base/metric-table.ts';
import { createMetrics } from '../../src/base/metrics.ts';
import { LOOK_MAX, OUTBOX_COUNT_MAX } from '../../src/ledger/index.ts';

const PAGE = fileURLToPath(new URL('../../docs/observability.md', import.meta.url));
const TABLE = /(?<=<!-- metrics -->\n).*?(?=<!-- \/metrics -->)/s;

/** Of gauges: one that was not read yet has no series. */
const LABELS: Readonly<Record<string, readonly string[]>> = Object.fromEntries(
  Object.entries(GAUGES).map(([name, gauge]) => [name, 'labels' in gauge ? gauge.labels : []]),
);

type Described = { readonly name: string; readonly type: string; readonly help: string };

/** In the order of their names, with the labels that a scrape shows. */
async function tableOf(): Promise<string> {
  const { registry } = createMetrics({ version: '1', sources: () => ['default'] });
  const described = (await registry.getMetricsAsJSON()) as unknown as (Described & {
    readonly values: readonly { readonly labels: object }[];
  })[];
  const rows = described
    .filter(({ name }) => name.startsWith('tallyhook_'))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ name, type, help, values }) => {
      const found = Object.keys(values[0]?.labels ?? {}).filter((label) => label !== 'le');
      const labels = (LABELS[name] ?? found).map((label) => `\`${label}\``).join(', ') || '–';
      return `| \`${name}\` | ${type} | ${labels} | ${help} |\n`;
    });
  return `| name | type | labels | meaning |\n|---|---|---|---|\n${rows.join('')}`;
}

test('the page on observability has every metric of a fresh registry, and no other', async () => {
  const page = readFileSync(PAGE, 'utf8');
  expect(TABLE.exec(page)).not.toBeNull();
  const table = await tableOf();
  await expect(page.replace(TABLE, () => table)).toMatchFileSnapshot(PAGE);
});

test('the metrics that are counted up to a limit name the one that holds', () => {
  const limits = Object.values(GAUGES).flatMap(({ help }) => /up to ([\d,]+)\.$/.exec(help)?.[1] ?? []);
  expect(new Set(limits)).toEqual(
    new Set([OUTBOX_COUNT_MAX, LOOK_MAX].map((limit) => limit.toLocaleString('en-US'))),
  );
});
