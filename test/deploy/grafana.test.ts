// deploy/grafana/tallyhook.json: what Grafana's documents say of a dashboard's JSON holds, each expression parses, and each metric in
// it is one that a fresh process has. There is no Grafana here that could draw it.

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createFolder } from '../support/folder.ts';
import { fetchAfresh } from '../support/requests.ts';
import { startTestService } from '../support/service.ts';

const promtool = process.env['TEST_PROMTOOL'] ?? '';
const PROMETHEUS = z.object({ type: z.literal('prometheus'), uid: z.literal('${datasource}') });
const COLUMNS = 24;

/** By Grafana's "Dashboard JSON model", and the panels that are used here. */
const Target = z.object({
  refId: z.string().regex(/^[A-Z]$/),
  datasource: PROMETHEUS,
  expr: z.string().min(1),
  legendFormat: z.string(),
});
const Place = z.object({
  x: z.int().min(0),
  y: z.int().min(0),
  w: z.int().min(1).max(COLUMNS),
  h: z.int().min(1),
});
const Panel = z.object({
  id: z.int().positive(),
  type: z.enum(['row', 'stat', 'timeseries']),
  title: z.string().min(1),
  gridPos: Place,
  description: z.string().optional(),
  targets: z.array(Target).default([]),
});
const Variable = z.object({
  name: z.string(),
  type: z.enum(['datasource', 'query']),
  query: z.union([z.string(), z.object({ query: z.string(), refId: z.string() })]),
});
const Dashboard = z.object({
  id: z.null(), // Grafana gives it one
  uid: z.string().max(40),
  title: z.literal('Tallyhook'),
  schemaVersion: z.int(),
  time: z.object({ from: z.string(), to: z.string() }),
  templating: z.object({ list: z.array(Variable) }),
  annotations: z.object({ list: z.array(z.object({ datasource: PROMETHEUS, expr: z.string() })) }),
  panels: z.array(Panel),
});

const text = readFileSync(new URL('../../deploy/grafana/tallyhook.json', import.meta.url), 'utf8');
const dashboard = Dashboard.parse(JSON.parse(text));
const drawn = dashboard.panels.filter(({ type }) => type !== 'row');
const variables = dashboard.templating.list;
const queries = variables.flatMap(({ query }) => (typeof query === 'string' ? [] : [query.query]));
const expressions = [
  ...drawn.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
  ...dashboard.annotations.list.map(({ expr }) => expr),
];

test('each panel has an id of its own, a description and something to draw, and none covers another', () => {
  const ids = dashboard.panels.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  for (const { title, description, targets } of drawn)
    expect({ title, isDescribed: Boolean(description), targets: targets.length > 0 }).toEqual({
      title,
      isDescribed: true,
      targets: true,
    });
  const cells = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, index) => `${x + (index % w)} ${y + Math.floor(index / w)}`),
  );
  expect(new Set(cells).size).toBe(cells.length);
  for (const { gridPos } of dashboard.panels) expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(COLUMNS);
});

test('each variable is used, and no other one', () => {
  const used = new Set(
    [...text.matchAll(/\$\{?(\w+)/g)].map(([, name]) => name).filter((name) => !name?.startsWith('__')),
  );
  expect(used).toEqual(new Set(variables.map(({ name }) => name)));
  for (const expr of expressions) expect(expr).toMatch(/job="\$job",instance=~"\$instance"|^ALERTS/);
});

test('each metric in it exists on a fresh process', async () => {
  await using service = await startTestService();
  const scraped = await (await fetchAfresh(`${service.operators}/metrics`)).text();
  const found = new Set([...scraped.matchAll(/^(\w+)[{ ]/gm)].map(([, name]) => name));
  const named = [...expressions, ...queries].flatMap(
    (expr) => expr.match(/\b(?:tallyhook|process|nodejs)_\w+/g) ?? [],
  );
  expect(named.length).toBeGreaterThan(50);
  expect([...new Set(named)].filter((name) => !found.has(name))).toEqual([]);
});

/** As Grafana fills them in. */
const filled = (expr: string) =>
  expr.replaceAll('$__rate_interval', '1m').replaceAll(/\$(job|instance)/g, 'one');

/** By promtool. It has no check of an expression, but of rules. */
async function check(given: readonly string[]) {
  await using folder = await createFolder();
  const rules = given.map((expr, index) => ({ record: `panel:expression:${index}`, expr: filled(expr) }));
  const file = await folder.write('rules.yml', JSON.stringify({ groups: [{ name: 'dashboard', rules }] }));
  await promisify(execFile)(promtool, ['check', 'rules', file]);
}

describe.skipIf(!promtool)('promtool', () => {
  test('each expression parses, and one that does not would be seen', async () => {
    await check(expressions);
    await expect(check([...expressions, 'sum(tallyhook_outbox_parked'])).rejects.toThrow('parse error');
  });
});
