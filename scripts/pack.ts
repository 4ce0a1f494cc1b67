// `npm run pack`: makes the npm package, with its bill of materials beside it. Its options are in usage/pack.txt.

import { copyFileSync, globSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve, sep } from 'node:path';
import { parseArgs } from 'node:util';
import { runGuarded } from './guarded.ts';
import { createProgress, say } from './output.ts';
import { billOfMaterials } from './pack/bill.ts';
import { packageManifest } from './pack/manifest.ts';
import { createRun } from './pack/run.ts';
import { stage } from './pack/stage.ts';
import { ROOT } from './relay.ts';
import { makeThrowAwayFolder } from './services/folders.ts';
import type { Guard } from './services/guard.ts';

const OUT = join(ROOT, '.local/package');

/** @throws Error with what is wrong with them */
function readFolder(args: string[]): string {
  return resolve(parseArgs({ args, options: { out: { type: 'string', default: OUT } } }).values.out);
}

async function pack(guard: Guard, out: string): Promise<number> {
  const { during } = createProgress();
  const work = makeThrowAwayFolder(guard);
  const staging = join(work, 'package');
  mkdirSync(staging);
  mkdirSync(out, { recursive: true });
  const run = createRun(guard, work);
  const own = await during('JavaScript and declarations', () => stage(run, staging, work));
  const file = `${own.name}-${own.version}`;
  const [tgz, billFile] = [join(out, `${file}.tgz`), join(out, `${file}.cdx.json`)];
  rmSync(billFile, { force: true }); // of an earlier package, if the new one cannot be made
  await during('package', async () => {
    await run('npm', ['pack', '--ignore-scripts', '--pack-destination', work], staging);
    copyFileSync(join(work, `${file}.tgz`), tgz);
  });
  say(`\n${tgz}  ${kilobytes(tgz)}`);
  for (const line of contentsOf(staging)) say(`  ${line}`);
  const bill = await during('bill of materials', () => billOfMaterials(run, packageManifest(own), work));
  writeFileSync(billFile, bill);
  say(`\n${billFile}  ${kilobytes(billFile)}`);
  return 0;
}

/** What is in it: each file or folder of its root, with the number of its files. */
function contentsOf(folder: string): string[] {
  const counts = new Map<string, number>();
  for (const path of globSync('**/*', { cwd: folder }).filter((each) =>
    statSync(join(folder, each)).isFile(),
  )) {
    const [first = ''] = path.split(sep);
    counts.set(first, (counts.get(first) ?? 0) + 1);
  }
  return [...counts]
    .toSorted(([a], [b]) => a.localeCompare(b))
    .map(([name, count]) => (statSync(join(folder, name)).isFile() ? name : `${name}/  ${count} files`));
}

const kilobytes = (path: string) => `${(statSync(path).size / 1_000).toFixed(0)} kB`;

process.exit(await runGuarded('npm run pack', () => readFolder(process.argv.slice(2)), pack));
