// The programs that the documents show to senders, held against every published vector.

import { execFile, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { chmod, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createFolder, type TestFolder } from '../support/folder.ts';
import { sign } from '../support/sender.ts';

const run = promisify(execFile);
const at = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

type Vector = { secret: string; body: string; header: string | null; verdict: 'valid' | 'invalid' };
const { vectors } = JSON.parse(readFileSync(at('docs/signature-vectors.json'), 'utf8')) as {
  vectors: Vector[];
};

/** Many vectors have the same secret and body, and differ in the header: each program is run once for each pair. */
const pairOf = ({ secret, body }: Vector) => `${secret} ${body}`;
const pairs = [...new Map(vectors.map((vector) => [pairOf(vector), vector])).values()];

/** What a program prints. Undefined if it does not run here: a name on the PATH may lead to nothing. */
function printedBy(program: string, ...args: readonly string[]): string | undefined {
  const { status, stdout } = spawnSync(program, args, { encoding: 'utf8' });
  return status === 0 ? stdout.trim() : undefined;
}

const GO = process.env['TEST_GO'] || 'go';
const HAS_OPENSSL =
  printedBy('bash', '--version') !== undefined && printedBy('openssl', 'version') !== undefined;
/** `python3` may be a script that chooses one, and takes long to start. */
const PYTHON = printedBy(process.env['TEST_PYTHON'] || 'python3', '-c', 'import sys; print(sys.executable)');

/** `program`: what runs or compiles it; undefined where that is missing. */
type Example = { readonly file: string; readonly program: string | undefined };

const EXAMPLES: readonly Example[] = [
  { file: 'sign.mjs', program: process.execPath },
  { file: 'sign.py', program: PYTHON },
  { file: 'sign.sh', program: HAS_OPENSSL ? 'bash' : undefined },
  { file: 'sign.go', program: printedBy(GO, 'version') === undefined ? undefined : GO },
];

/** Go's cache outlives the run: without it, its library is compiled anew each time. */
async function compileGo(source: string): Promise<string> {
  const program = folder.path('sign');
  const env = { ...process.env, GOCACHE: at('node_modules/.cache/tallyhook-go') };
  await run(GO, ['build', '-o', program, source], { env });
  return program;
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

describe.each(EXAMPLES)('$file', ({ file, program }) => {
  const source = at(`examples/signing/${file}`);
  const prepare = async () => (file.endsWith('.go') ? [await compileGo(source)] : [program ?? '', source]);

  test.skipIf(program === undefined)('prints the header of each valid vector, and of no other', async () => {
    const [command = '', ...args] = await prepare();
    const printed = new Map<string, string>();
    for (const [index, pair] of pairs.entries()) {
      const files = [folder.path(`${index}.secret`), folder.path(`${index}.body`)];
      printed.set(pairOf(pair), (await run(command, [...args, ...files])).stdout);
    }

    const matching = vectors.filter((vector) => printed.get(pairOf(vector)) === `${vector.header}\n`);
    expect(matching).toEqual(vectors.filter(({ verdict }) => verdict === 'valid'));
  });

  test.skipIf(program === undefined)(
    'leaves white space around a secret out, and a byte order mark',
    async () => {
      const secret = 'of two  words\r\nand two lines: *é';
      const files = [await folder.write('odd', `\ufeff \t${secret} \r\n\n`), await folder.write('x', 'x')];
      const [command = '', ...args] = await prepare();

      expect((await run(command, [...args, ...files])).stdout).toBe(`${sign('x', secret)}\n`);
    },
  );
});

test.skipIf(!HAS_OPENSSL)(
  'sign.sh gives the secret to no process as an argument, where every user of the machine could read it',
  async () => {
    await using shims = await createFolder();
    const shim = '#!/bin/sh\necho "${0##*/} $*" >> "$CALLS"\nPATH=$REAL_PATH\nexec "${0##*/}" "$@"\n';
    for (const name of ['openssl', 'od', 'tr', 'cat', 'sed', 'wc', 'printf', 'echo']) {
      await chmod(await shims.write(name, shim), 0o700);
    }
    const secret = 'planted-signing-secret-0001';
    const env = {
      PATH: `${shims.path('.')}:${process.env['PATH']}`,
      REAL_PATH: process.env['PATH'],
      CALLS: shims.path('calls'),
    };
    const files = [await shims.write('secret', secret), await shims.write('body', 'x')];

    const { stdout } = await run('bash', [at('examples/signing/sign.sh'), ...files], { env });

    expect(stdout.trim()).toBe(sign('x', secret));
    const calls = readFileSync(shims.path('calls'), 'utf8');
    expect(calls.match(/^openssl dgst -sha256 -binary$/gm)).toHaveLength(2);
    expect(calls).not.toContain('planted');
    expect(calls).not.toContain(Buffer.from(secret).toString('hex'));
  },
);
