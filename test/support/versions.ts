// Other versions of the program beside ours, each in a folder of its own: the one before, taken from the repository, and later ones, which are
// ours with a migration more.

import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ROOT } from '../../scripts/relay.ts';
import { EFFECTS } from '../../src/ledger/schema/effects.ts';
import type { AheadMigration } from '../../src/ledger/schema/migrations.ts';
import { copyProgram } from './clone.ts';
import { measureEffects } from './migration-effects.ts';
import { programWith } from './migrations.ts';

const PARTS = ['src', 'migrations', 'package.json', 'package-lock.json'];

type Manifest = { readonly version: string; readonly dependencies: Readonly<Record<string, string>> };

export type Version = { readonly version: string; readonly main: string };

/** With our packages, or where it needs others, with its own. */
export async function takeVersion(commit: string, folder: string): Promise<Version> {
  await mkdir(folder);
  const archive = execFileSync('git', ['archive', commit, ...PARTS], { cwd: ROOT, maxBuffer: 2 ** 28 });
  const { status } = spawnSync('tar', ['-x', '-C', folder], { input: archive });
  if (status !== 0) throw new Error(`git archive ${commit} could not be unpacked`);
  const [own, ours] = [folder, ROOT].map((root) => readManifest(root).dependencies);
  if (JSON.stringify(own) === JSON.stringify(ours))
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  else
    execFileSync('npm', ['ci', '--omit=dev', '--ignore-scripts', '--no-audit'], {
      cwd: folder,
      stdio: 'ignore',
    });
  return versionIn(folder);
}

const readManifest = (root: string): Manifest =>
  JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest;

const versionIn = (root: string): Version => ({
  version: readManifest(root).version,
  main: join(root, 'src/main.ts'),
});

/** Ours with these migrations, given as the text of their files. */
export async function makeVersion(
  version: string,
  migrations: Readonly<Record<string, string>>,
  folder: string,
): Promise<Version> {
  await mkdir(folder);
  await copyProgram(folder);
  await writeFile(join(folder, 'package.json'), JSON.stringify({ ...readManifest(folder), version }));
  const added: Record<string, AheadMigration> = {};
  for (const [name, text] of Object.entries(migrations)) {
    const file = join(folder, 'migrations', `${name}.ts`);
    await writeFile(file, text);
    added[name] = (await import(file)) as AheadMigration;
  }
  const effects = await measureEffects(programWith(added), (name) => name in added);
  await writeFile(join(folder, 'migrations/effects.json'), JSON.stringify({ ...EFFECTS, ...effects }));
  return versionIn(folder);
}
