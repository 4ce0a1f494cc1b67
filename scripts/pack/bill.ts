// The package's bill of materials: what it needs to run, in CycloneDX, by `npm sbom` from the lock file alone. Nothing is installed.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Lock, packageLock, type Packaged } from './manifest.ts';
import type { Run } from './run.ts';
import { readOwn, writeJson } from './stage.ts';

/** The first npm that has it. */
const NEEDED = 10;
/** What an older npm fetches for this. */
const NEWER = ['npm', 'exec', '--yes', '--package=npm@11.21.2', '--', 'npm'];
const SBOM = [
  'sbom',
  '--sbom-format=cyclonedx',
  '--sbom-type=application',
  '--package-lock-only',
  '--omit=dev',
];

/** @returns the document. @throws Error if npm is too old and cannot fetch a newer one */
export async function billOfMaterials(run: Run, manifest: Packaged, work: string): Promise<string> {
  // npm calls the package by its folder's name.
  const folder = join(work, 'bill', manifest.name);
  mkdirSync(folder, { recursive: true });
  writeJson(join(folder, 'package.json'), manifest);
  writeJson(join(folder, 'package-lock.json'), packageLock(readOwn('package-lock.json') as Lock, manifest));
  const version = (await run('npm', ['--version'], folder)).trim();
  const isEnough = Number(version.split('.')[0]) >= NEEDED;
  const [program = '', ...args] = isEnough ? ['npm'] : NEWER;
  try {
    return await run(program, [...args, ...SBOM], folder);
  } catch (error) {
    if (isEnough) throw error;
    const missing = `npm sbom needs npm ${NEEDED} or newer. This is npm ${version}, and it could not fetch a newer one`;
    throw new Error(missing, { cause: error });
  }
}
