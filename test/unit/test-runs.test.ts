// What a run of the tests consists of, and what it prints about itself.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { isText, standInsFor } from '../../scripts/changed.ts';
import { choosePatience } from '../../scripts/patience.ts';
import { type FileProfile, profileTable, secondsOfProcess } from '../../scripts/profile.ts';
import { ROOT } from '../../scripts/relay.ts';
import { NOT_IN_ALL, ONLY_IN_ALL } from '../only-in-all.ts';
import { lastLines } from '../support/failures.ts';
import { createFolder } from '../support/folder.ts';

const readersOf = (name: string) => [`reader-of-${name}`];

test('each file that a run leaves out is there', () => {
  expect([...ONLY_IN_ALL, ...NOT_IN_ALL].filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
});

describe('the profile', () => {
  test('reads the times of a process and of its children, whatever its name', () => {
    const fields = '1 1 1 0 -1 4194560 9 8 7 6 150 25 300 50 20 0 11 0 99';
    expect(secondsOfProcess(`42 (node (x) y) S ${fields}`)).toEqual({ own: 1.75, children: 3.5 });
  });

  test('shows the dearest file and folder first, and the sum of all', () => {
    const nothing = { taken: 0, services: 0, databases: 0, processes: 0, browsers: 0 };
    const files: FileProfile[] = [
      { ...nothing, file: 'test/a/one.test.ts', own: 1, children: 0 },
      { ...nothing, file: 'test/b/two.test.ts', own: 1, children: 2.5, browsers: 3 },
    ];
    const rows = profileTable(files, { Postgres: 4 }).map((line) => line.trim().split(/\s+/));
    expect(rows.map((cells) => `${cells[0]} ${cells.at(-1)}`)).toEqual([
      'all file',
      '3.5 test/b/two.test.ts',
      '1.0 test/a/one.test.ts',
      ' ',
      'all folder',
      '3.5 test/b/',
      '1.0 test/a/',
      ' ',
      '4.5 files',
      '4.0 Postgres',
    ]);
    expect(rows.at(-2)?.slice(1, 8)).toEqual(['2.0', '2.5', '0.0', '0', '0', '0', '3']);
  });
});

describe('the factor for hanging tests', () => {
  test('is measured from 1 to 5, and leaves nothing behind', async () => {
    await using folder = await createFolder();
    const { factor, why } = await choosePatience(undefined, folder.path('.'));
    expect(factor).toBeGreaterThanOrEqual(1);
    expect(factor).toBeLessThanOrEqual(5);
    expect(why).toMatch(/^processor [\d.]+, disk [\d.]+$/);
    expect(existsSync(folder.path('patience'))).toBe(false);
  });

  test('can be given, and nonsense is refused', async () => {
    expect(await choosePatience('2.5', '')).toMatchObject({ factor: 2.5 });
    for (const given of ['0', '0.5', 'fast', '1e9'])
      await expect(choosePatience(given, '')).rejects.toThrow('a number from 1 to 100');
  });
});

test('a failure shows what was logged since the test began, twenty lines at most and three alike, and shortens long ones', () => {
  const lines = Array.from({ length: 30 }, (_, number) => ({ number }));
  const shown = (from: number) => lastLines([{ lines, from }]).split('\n');
  expect(shown(28)).toEqual(['the last lines of the log:', '{"number":28}', '{"number":29}']);
  expect(shown(0)).toHaveLength(1 + 20);
  expect(lastLines([{ lines, from: 30 }])).toBe('');
  expect(lastLines([{ lines: [{ msg: 'console request', status: 200 }], from: 0 }])).toBe(''); // a poll
  const accepted = lines.map((line) => ({ ...line, msg: 'delivery', outcome: 'accepted' }));
  const oneRefused = [{ msg: 'delivery', outcome: 'refused' }, ...accepted];
  expect(lastLines([{ lines: oneRefused, from: 0 }]).split('\n')).toHaveLength(1 + 1 + 3);
  expect(lastLines([{ lines: [{ text: 'x'.repeat(9_000) }], from: 0 }]).length).toBeLessThan(600);
});

describe('what a change reaches', () => {
  test.for([
    ['test/support/bus.ts', ['test/support/bus.ts']],
    ['src/relay/backoff.ts', ['src/relay/backoff.ts', 'scripts/program.ts']],
    ['src/web/base.css', ['reader-of-base.css', 'scripts/program.ts']],
    [
      'migrations/schema.sql',
      ['migrations/schema.sql', 'src/ledger/schema/migrate.ts', 'scripts/program.ts'],
    ],
    ['docs/events.md', ['reader-of-events.md']],
  ] as const)('%s: the importers of %j', ([file, standIns]) => {
    expect(standInsFor(file, readersOf)).toEqual(standIns);
  });

  test('a document, an example and a contract reach the unit tests', () => {
    expect(['README.md', 'examples/go/main.go', 'contracts/events.json'].map(isText)).toEqual([
      true,
      true,
      true,
    ]);
    expect(['src/web/base.css', 'migrations/schema.sql', 'test/a.test.ts'].map(isText)).toEqual([
      false,
      false,
      false,
    ]);
  });
});
