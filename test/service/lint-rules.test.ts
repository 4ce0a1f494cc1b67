// The linter's rules of imports, tried by files that break them. They are made of the tables in scripts/lint/architecture.ts.

import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { createFolder } from '../support/folder.ts';

const at = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const read = (path: string) => readFileSync(at(path), 'utf8');

/** Imports that are no part of the project, in a copy of the linter's configuration. */
const IMPORTS = {
  'src/intake/a.ts': ['../relay/index.ts', '../ledger/record.ts', '../ledger/index.ts'],
  'src/operators/jobs/pages.ts': [
    './queries.ts',
    './contract.ts',
    '../events/contract.ts',
    '../../ledger/index.ts',
  ],
  'src/operators/replays/changes.queries.ts': ['../events/queries.ts', '../jobs/queries.ts', './pages.ts'],
  'src/operators/kernel/view/act.ts': ['../../jobs/queries.ts', '../../client/index.ts'],
  'src/operators/outbox/command.ts': [
    './operations.ts',
    '../client/index.ts',
    '../../terminal/io.ts',
    '../kernel/api.command.ts',
    '../kernel/operation/gate.ts',
  ],
  'src/operators/events/contract.ts': ['../kernel/operation/gate.ts', '../kernel/list/fields.contract.ts'],
  'src/operators/quarantine/queries.ts': [
    '../groups/queries.ts',
    '../groups/contract.ts',
    '../deliveries/queries.ts',
  ],
} as const;

test('the linter refuses what the tables forbid, and nothing else', async () => {
  await using folder = await createFolder();
  const files = new Map(
    ['oxlint.config.ts', 'scripts/lint/architecture.ts'].map((path) => [path, read(path)]),
  );
  for (const [path, imported] of Object.entries(IMPORTS))
    files.set(path, imported.map((from, index) => `export { x${index} } from '${from}';\n`).join(''));
  for (const [path, content] of files) {
    mkdirSync(dirname(folder.path(path)), { recursive: true });
    await folder.write(path, content);
  }
  symlinkSync(at('node_modules'), folder.path('node_modules'));
  const { stdout } = spawnSync(
    process.execPath,
    [at('node_modules/oxlint/bin/oxlint'), '--format=unix', 'src'],
    {
      cwd: folder.path('.'),
      encoding: 'utf8',
    },
  );

  const refused = stdout.matchAll(/^(?:.*\/)?(src\/\S+?):\d+.*?'(\S+)' import is restricted/gm);
  expect(Array.from(refused, ([, path, from]) => `${path} ${from}`).toSorted()).toEqual([
    'src/intake/a.ts ../ledger/record.ts',
    'src/intake/a.ts ../relay/index.ts',
    'src/operators/events/contract.ts ../kernel/operation/gate.ts',
    'src/operators/jobs/pages.ts ../../ledger/index.ts',
    'src/operators/jobs/pages.ts ./queries.ts',
    'src/operators/kernel/view/act.ts ../../client/index.ts',
    'src/operators/kernel/view/act.ts ../../jobs/queries.ts',
    'src/operators/outbox/command.ts ../kernel/operation/gate.ts',
    'src/operators/outbox/command.ts ./operations.ts',
    'src/operators/quarantine/queries.ts ../groups/queries.ts',
    'src/operators/replays/changes.queries.ts ../jobs/queries.ts',
    'src/operators/replays/changes.queries.ts ./pages.ts',
  ]);
});
