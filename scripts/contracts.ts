// `npm run contracts`: makes the files in contracts/ again, after a change of the forms or of what describes them. Says what
// breaks. With --release it records the new forms and examples, which never change from then on.

import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { allBreaks, CONTRACTS, leftOver, listMakings } from './contracts/documents.ts';
import { keepTypes } from './contracts/kept-types.ts';
import { faultsOf, majorVersions, release, unreleased } from './contracts/released.ts';
import { complain, complainOfUsage, explain, say } from './output.ts';

async function main(args: string[]): Promise<number> {
  let isRelease: boolean;
  try {
    isRelease = parseArgs({ args, options: { release: { type: 'boolean', default: false } } }).values.release;
  } catch (error) {
    complainOfUsage('npm run contracts', error);
    return 2;
  }
  try {
    return await run(isRelease);
  } catch (error) {
    complain(explain(error));
    return 1;
  }
}

async function run(isRelease: boolean): Promise<number> {
  for (const path of leftOver()) {
    rmSync(join(CONTRACTS, path));
    say(`removed, since it was never released: contracts/${path}`);
  }
  // Before the documents: where a form breaks, their samples may be wrong, too, and that would hide the break.
  const faults = [...faultsOf(CONTRACTS), ...allBreaks()];
  for (const fault of faults) complain(fault);
  if (faults.length > 0) {
    complain('Nothing was written. See "How a form changes" in contracts/README.md.');
    return 1;
  }
  const made = await Promise.all(listMakings().map(async ({ path, make }) => ({ path, text: await make() })));
  const written = made.filter(({ path, text }) => writeIfNew(join(CONTRACTS, path), text));
  for (const { path } of written) say(`contracts/${path}`);
  say(`${written.length} of ${made.length} files were written anew`);

  if (isRelease) return releaseAll();
  for (const path of unreleased(CONTRACTS)) say(`not released yet: contracts/${path}`);
  return 0;
}

function releaseAll(): number {
  const [major] = majorVersions(unreleased(CONTRACTS));
  if (major !== undefined) {
    complain(
      `contracts/${major} begins a new major version, and cannot be released: the service publishes one version.`,
    );
    complain(
      'It must first publish the old version beside the new one. See "A new major version" in contracts/README.md.',
    );
    return 1;
  }
  if (unreleased(CONTRACTS).some((path) => path.startsWith('events/'))) keepTypes(CONTRACTS);
  const paths = unreleased(CONTRACTS);
  release(CONTRACTS, paths);
  for (const path of paths) say(`released: contracts/${path}`);
  if (paths.length === 0) say('there is nothing to release');
  return 0;
}

function writeIfNew(path: string, text: string): boolean {
  if (textOf(path) === text) return false;
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  return true;
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

process.exit(await main(process.argv.slice(2)));
