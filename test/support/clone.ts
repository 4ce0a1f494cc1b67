// A copy of the project as a user has it after `git clone` and the first start: its files, and its packages as links. What runs
// in it has a `.local` of its own, so it disturbs nothing of the folder that is tested.

import { chmod, copyFile, cp, mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { ROOT } from '../../scripts/relay.ts';

export type Clone = AsyncDisposable & { readonly folder: string };

const LEFT_OUT = new Set(['.git', '.local', 'node_modules']);
/** Written by npm and `scripts/run.mjs`: with these the packages count as installed. */
const RECORDS = ['.package-lock.json', '.tallyhook-stamp'];

/**
 * Only the program, in `root`, with a `.local` that is still empty: for commands that look for a local run beside them.
 * `others`: files and folders that are copied too.
 */
export async function copyProgram(root: string, others: readonly string[] = []): Promise<void> {
  for (const name of ['src', 'migrations', 'package.json', ...others])
    await cp(join(ROOT, name), join(root, name), { recursive: true });
  await symlink(join(ROOT, 'node_modules'), join(root, 'node_modules'));
  await mkdir(join(root, '.local'));
}

export async function makeClone(): Promise<Clone> {
  const folder = await mkdtemp(join(tmpdir(), 'tallyhook-clone-'));
  // Postgres, which runs as another account if we are root, keeps its data in here only if it can pass through.
  await chmod(folder, 0o711);
  await cp(ROOT, folder, { recursive: true, filter: (path) => !LEFT_OUT.has(basename(path)) });
  const [from, to] = [join(ROOT, 'node_modules'), join(folder, 'node_modules')];
  await mkdir(to);
  const packages = (await readdir(from)).filter((name) => !name.startsWith('.'));
  await Promise.all(packages.map((name) => symlink(join(from, name), join(to, name))));
  await Promise.all(RECORDS.map((name) => copyFile(join(from, name), join(to, name))));
  // A folder of its own, since the command `tallyhook` in it finds the program by its own place.
  await mkdir(join(to, '.bin'));
  const programs = (await readdir(join(from, '.bin'))).filter((name) => name !== 'tallyhook');
  await Promise.all(programs.map((name) => symlink(join(from, '.bin', name), join(to, '.bin', name))));
  return { folder, [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) };
}
