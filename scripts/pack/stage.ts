// Makes the package's files in a folder: those that `files` of package.json names, at the same places as in the repository, so
// that what is found relative to a module is found there, too. TypeScript becomes JavaScript, and the modules of `exports` and
// what they import get declarations.

import { cpSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../relay.ts';
import { doorsOf, type Manifest, packageManifest } from './manifest.ts';
import type { Run } from './run.ts';

const ALWAYS = ['LICENSE', 'README.md'];
const CONFIG = join(ROOT, 'scripts/pack/tsconfig.json');

export const readOwn = (name: string): unknown => JSON.parse(readFileSync(join(ROOT, name), 'utf8'));

/** @param folder where the package goes @param work for files in between */
export async function stage(run: Run, folder: string, work: string): Promise<Manifest> {
  const own = readOwn('package.json') as Manifest;
  for (const path of [...ALWAYS, ...own.files].flatMap((pattern) => globSync(pattern, { cwd: ROOT })))
    cpSync(join(ROOT, path), join(folder, path), {
      recursive: true,
      filter: (each) => !each.endsWith('.ts'),
    });
  const declared = join(work, 'declarations.json');
  writeJson(declared, {
    extends: CONFIG,
    compilerOptions: { declaration: true, emitDeclarationOnly: true },
    files: doorsOf(own).map((path) => join(ROOT, path)),
    include: [],
  });
  // At once: neither checks the types, since `npm test` does.
  await Promise.all([compile(run, CONFIG, folder), compile(run, declared, folder)]);
  // Last: the compiler puts a copy of the repository's own there, which src/base/version.ts imports.
  writeJson(join(folder, 'package.json'), packageManifest(own));
  return own;
}

async function compile(run: Run, config: string, folder: string): Promise<void> {
  await run(join(ROOT, 'node_modules/.bin/tsc'), ['-p', config, '--outDir', folder], ROOT);
}

export function writeJson(path: string, value: unknown): void {
  writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`);
}
