// The package as a user has it: made by `npm run pack`, and installed in an empty folder.

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ROOT } from '../../scripts/relay.ts';
import { createFolder } from '../support/folder.ts';

const exec = promisify(execFile);

export type Finished = { readonly code: number; readonly stdout: string; readonly stderr: string };

export type Installed = AsyncDisposable & {
  /** What `npm run pack` printed. */
  readonly printed: string;
  readonly tgz: string;
  /** Of the bill of materials. */
  readonly bill: string;
  /** The project into which the package is installed. */
  readonly folder: string;
  /** The package's command. */
  readonly command: string;
  readonly version: string;
};

/** npm's of the run itself: they would lead another npm to our own folder. What the user set, such as the registry, stays. */
const OF_THIS_RUN = /^npm_(?!config_)|^npm_config_(?:local_)?prefix$/;
export const environment = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !OF_THIS_RUN.test(name)),
);

/** From npm's cache where it can, and without the minutes for which npm tries to reach a registry. */
const OPTIONS = [
  '--prefer-offline',
  '--fetch-retries=0',
  '--fetch-timeout=20000',
  '--no-audit',
  '--no-fund',
  '--ignore-scripts',
];
const OFFLINE = /ENOTCACHED|ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ENETUNREACH|ETIMEDOUT/;

/** @returns its exit code and output. @throws Error if it cannot be started */
export async function runProgram(program: string, args: readonly string[], cwd: string): Promise<Finished> {
  try {
    return {
      code: 0,
      ...(await exec(program, args, { cwd, env: environment, maxBuffer: 64 * 1024 * 1024 })),
    };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: unknown; stdout: string; stderr: string };
    if (typeof code !== 'number') throw error;
    return { code, stdout, stderr };
  }
}

export async function installPackage(): Promise<Installed> {
  await using resources = new AsyncDisposableStack();
  const place = resources.use(await createFolder());
  const folder = place.path('project');
  const packed = await runProgram(
    process.execPath,
    [join(ROOT, 'scripts/pack.ts'), '--out', place.path('out')],
    ROOT,
  );
  if (packed.code !== 0) throw new Error(packed.stderr);
  const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { version: string };
  const tgz = place.path(`out/tallyhook-${version}.tgz`);
  await mkdir(folder);
  await writeFile(join(folder, 'package.json'), '{ "name": "project", "private": true, "type": "module" }\n');
  const installed = await runProgram('npm', ['install', '--prefix', folder, ...OPTIONS, tgz], folder);
  if (installed.code !== 0) {
    if (!OFFLINE.test(installed.stderr)) throw new Error(installed.stderr);
    await installOffline(folder, tgz);
  }
  const bill = place.path(`out/tallyhook-${version}.cdx.json`);
  const command = join(folder, 'node_modules/tallyhook/bin/tallyhook.js');
  const { stdout: printed } = packed;
  const owned = resources.move();
  return { printed, tgz, bill, folder, command, version, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** Without a registry: unpacked by hand, with the packages that are installed here, which have the same versions. */
async function installOffline(folder: string, tgz: string): Promise<void> {
  const packages = join(folder, 'node_modules');
  await mkdir(join(packages, 'tallyhook'), { recursive: true });
  await mkdir(join(packages, '.bin'));
  await runProgram('tar', ['-xzf', tgz, '--strip-components=1', '-C', join(packages, 'tallyhook')], folder);
  const text = await readFile(join(packages, 'tallyhook/package.json'), 'utf8');
  for (const name of Object.keys((JSON.parse(text) as { dependencies: object }).dependencies))
    await symlink(join(ROOT, 'node_modules', name), join(packages, name));
  await symlink('../tallyhook/bin/tallyhook.js', join(packages, '.bin/tallyhook'));
}

/** Gives the project the types of Node, which a TypeScript project has. */
export async function addNodeTypes({ folder }: Installed): Promise<void> {
  const types = join(folder, 'node_modules/@types');
  await mkdir(types, { recursive: true });
  if (!existsSync(join(types, 'node')))
    await symlink(join(ROOT, 'node_modules/@types/node'), join(types, 'node'));
}
