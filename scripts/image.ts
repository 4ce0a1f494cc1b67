// `npm run image`: builds the container image by buildah on any base that has Node, from this clone alone, with its bill of
// materials beside it. Its options are in usage/image.txt.

import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { runGuarded } from './guarded.ts';
import { createProgress, say } from './output.ts';
import { billOfMaterials } from './pack/bill.ts';
import { type Lock, type Manifest, neededBy, packageManifest } from './pack/manifest.ts';
import { createRun, type Run } from './pack/run.ts';
import { readOwn } from './pack/stage.ts';
import { ROOT } from './relay.ts';
import { makeThrowAwayFolder } from './services/folders.ts';
import type { Guard } from './services/guard.ts';

const OPTIONS = {
  base: { type: 'string' },
  name: { type: 'string' },
  format: { type: 'string', default: 'oci' },
  out: { type: 'string', default: join(ROOT, '.local/image') },
} as const;

type Options = {
  readonly base: string;
  readonly name: string | undefined;
  readonly format: string;
  readonly out: string;
};

/** @throws Error with what is wrong with them */
function readOptions(args: string[]): Options {
  const { base, name, format, out } = parseArgs({ args, options: OPTIONS }).values;
  if (base === undefined) throw new Error('--base is missing');
  return { base, name, format, out: resolve(out) };
}

async function build(guard: Guard, { base, name, format, out }: Options): Promise<number> {
  const { during } = createProgress();
  const work = makeThrowAwayFolder(guard);
  const run = createRun(guard, work);
  const own = readOwn('package.json') as Manifest;
  const image = name ?? `${own.name}:${own.version}`;
  const billFile = join(out, `${own.name}-${own.version}.cdx.json`);
  rmSync(billFile, { force: true }); // of an earlier image, if the new one cannot be made
  const bill = await during('bill of materials', () => billOfMaterials(run, packageManifest(own), work));
  await during(`image on ${base}`, async () => {
    const [context, packages] = [stageOwn(work), stagePackages(work)];
    // Some umasks close a clone to the user that the image runs as.
    await run('chmod', ['-R', 'a+rX,go-w', context, packages], work);
    const [revision, date] = await commit(run);
    await run(
      'buildah',
      [
        'bud',
        '--isolation=chroot',
        '--pull=false', // only if it is not here
        `--format=${format}`,
        `--build-arg=BASE=${base}`,
        // In place of the stage of this name, which downloads them.
        `--build-context=packages=${packages}`,
        `--label=org.opencontainers.image.revision=${revision}`,
        // So the same commit on the same base is the same image.
        `--timestamp=${date}`,
        `--tag=${image}`,
        `--file=${join(ROOT, 'Dockerfile')}`,
        context,
      ],
      work,
    );
  });
  mkdirSync(out, { recursive: true });
  writeFileSync(billFile, bill);
  say(`\n${image}\n${billFile}`);
  return 0;
}

/** What .dockerignore lets through. */
function stageOwn(work: string): string {
  const context = join(work, 'context');
  const names = readFileSync(join(ROOT, '.dockerignore'), 'utf8').matchAll(/^!(.+)$/gm);
  for (const [, name = ''] of names) cpSync(join(ROOT, name), join(context, name), { recursive: true });
  return context;
}

/** What the program needs to run, as npm has installed it in this clone. */
function stagePackages(work: string): string {
  const packages = join(work, 'packages');
  for (const path of neededBy(readOwn('package-lock.json') as Lock))
    cpSync(join(ROOT, path), join(packages, 'app', path), { recursive: true });
  return packages;
}

/** Which commit this is, marked if files differ from it, and its time in seconds. */
async function commit(run: Run): Promise<[revision: string, date: string]> {
  const revision = await run('git', ['describe', '--always', '--dirty', '--abbrev=40', '--exclude=*'], ROOT);
  return [revision.trim(), (await run('git', ['log', '-1', '--format=%ct'], ROOT)).trim()];
}

process.exit(await runGuarded('npm run image', () => readOptions(process.argv.slice(2)), build));
