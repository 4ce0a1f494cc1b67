// The programs that the documents show to senders, held against every published vector.

import { execFile, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createFolder, type TestFolder } from '../support/folder.ts';

const run = promisify(execFile);
const at = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

type Vector = { secret: string; body: string; header: string | null; verdict: 'valid' | 'invalid' };
const { vectors } = JSON.parse(readFileSync(at('docs/signature-vectors.json'), 'utf8')) as {
  vectors: Vector[];
};

/** Many vectors have the same secret and body, and differ in the header: each program is run once for each pair. */
const pairOf = ({ secret, body }: Vector) => `${secret} ${body}`;
const pairs = [...new Map(vectors.map((vector) => [pairOf(vector), vector])).values()];

type Program = readonly [command: string, ...args: string[]];

/** `compile`: what makes the program. Its cache survives the run: without it Go compiles its library anew each time. */
type Example = { readonly file: string; readonly needs: string; readonly compile?: typeof compileGo };

const EXAMPLES: readonly Example[] = [
  { file: 'sign.mjs', needs: process.execPath },
  { file: 'sign.py', needs: 'python3' },
  { file: 'sign.sh', needs: 'bash' },
  { file: 'sign.go', needs: process.env['TEST_GO'] || 'go', compile: compileGo },
];

const VERSION: Readonly<Record<string, readonly string[]>> = { 'sign.go': ['version'] };

/** By starting it: a name on the PATH may lead to nothing. */
const runs = (program: string, args: readonly string[] = ['--version']) =>
  spawnSync(program, args, { stdio: 'ignore' }).status === 0;

async function compileGo(go: string, source: string, target: string): Promise<Program> {
  const env = { ...process.env, GOCACHE: at('node_modules/.cache/tallyhook-go') };
  await run(go, ['build', '-o', target, source], { env });
  return [target];
}

let folder: TestFolder;
beforeAll(async () => {
  folder = await createFolder();
  for (const [index, { secret, body }] of pairs.entries()) {
    await writeFile(folder.path(`${index}.secret`), `${Buffer.from(secret, 'base64').toString()}\n`);
    await writeFile(folder.path(`${index}.body`), Buffer.from(body, 'base64'));
  }
});
afterAll(() => folder[Symbol.asyncDispose]());

describe.each(EXAMPLES)('$file', ({ file, needs, compile }) => {
  const isThere = runs(needs, VERSION[file]) && (file !== 'sign.sh' || runs('openssl', ['version']));

  test.skipIf(!isThere)('prints the header of each valid vector, and of no other', async () => {
    const source = at(`examples/signing/${file}`);
    const [command, ...args] = (await compile?.(needs, source, folder.path(file))) ?? [needs, source];
    const printed = new Map<string, string>();
    for (const [index, pair] of pairs.entries()) {
      const files = [folder.path(`${index}.secret`), folder.path(`${index}.body`)];
      printed.set(pairOf(pair), (await run(command, [...args, ...files])).stdout);
    }

    const matching = vectors.filter((vector) => printed.get(pairOf(vector)) === `${vector.header}\n`);
    expect(matching).toEqual(vectors.filter(({ verdict }) => verdict === 'valid'));
  });
});
