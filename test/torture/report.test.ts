import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { createFolder } from '../support/folder.ts';
import { commandLine, type Results, summary, writeDocs } from './report.ts';

const results: Results = {
  date: '2026-01-15T10:30:00.000Z',
  commandLine: 'npm run torture -- --seed 7',
  machine: { cpus: 2, memoryMB: 4096, kernel: '6', node: 'v24.0.0' },
  settings: { seed: 7, minutes: 5, faults: undefined, pace: 1, replicas: 2, senders: 12 },
  episodes: { alone: 1, together: 0 },
  lastedMs: 12_345,
  counts: {
    requests: 10,
    acknowledged: 9,
    events: 8,
    messages: 8,
    lost: 0,
    unexpected: 0,
    duplicated: 0,
    parked: 4,
    discarded: 1,
    recovered: 1,
  },
  operatorRetries: 0,
  finalDrainMs: 10,
  skipped: [],
  violations: [],
  effects: [
    {
      fault: 'postgres-kill',
      strikes: 1,
      lastedMs: 3_000,
      sender: { saw: { '503': 4, '202': 2 }, retries: 4, slowestMs: 500, longestGapMs: 3_100 },
      subscriber: { longestSilenceMs: 3_200, copies: 0 },
      heal: { firstSuccessMs: 150, outboxMs: undefined },
    },
  ],
};

test('the table goes between its markers, and what is written by hand stays', async () => {
  await using folder = await createFolder();
  const page = await folder.write(
    'page.md',
    '# Page\n\n<!-- torture:begin -->\nold\n<!-- torture:end -->\n\nthe end\n',
  );
  writeDocs(results, page);
  writeDocs(results, page);
  const text = await readFile(page, 'utf8');
  expect(text).toMatch(/^# Page\n\n<!-- torture:begin -->\n/);
  expect(text).toMatch(/\n<!-- torture:end -->\n\nthe end\n$/);
  expect(text).not.toContain('old');
  expect(text.split('**postgres-kill**')).toHaveLength(2);
  expect(text).toContain('2 × 202, 4 × 503; 4 retries; slowest 0.5 s; no 2xx for 3.1 s');
  expect(text).toContain('first 2xx 0.1 s, outbox never');
});

test('a page without the markers is left alone', async () => {
  await using folder = await createFolder();
  const page = await folder.write('page.md', 'by hand');
  expect(() => writeDocs(results, page)).toThrow('torture:begin');
  expect(await readFile(page, 'utf8')).toBe('by hand');
});

test('a run that broke a promise says which, and how to repeat it', () => {
  const broken = { ...results, violations: [{ kind: 'lost', what: 'default:job_1:completed' } as const] };
  expect(summary(broken)).toContain('1 promises broken:');
  expect(summary(broken)).toContain('  lost: default:job_1:completed');
  expect(summary(broken)).toContain('repeat: npm run torture -- --seed 7');
  expect(commandLine({ ...results.settings, faults: ['a', 'b'], pace: 0.5 })).toBe(
    'npm run torture -- --seed 7 --minutes 5 --faults a,b --pace 0.5 --replicas 2 --senders 12',
  );
});
