// Compiles the small C programs of `slow/`, by the machine's compiler or Debian's.

import { spawnSync } from 'node:child_process';
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onPath } from '../scripts/services/debian.ts';
import { findProgram } from '../scripts/services/find-program.ts';
import type { Guard } from '../scripts/services/guard.ts';

const TIMEOUT_MS = 30_000;
const FLAGS = {
  library: ['-shared', '-fPIC'],
  program: ['-pthread'],
} as const;

/** @throws Error with what to install */
export async function findCompiler(options: {
  guard: Guard;
  logFile: string;
  log: (line: string) => void;
}): Promise<string> {
  const found = await findProgram(
    {
      variable: 'CC',
      candidates: () => ['cc', 'gcc', 'clang'].flatMap(onPath),
      works: (program) =>
        spawnSync(program, ['-E', '-x', 'c', '-'], { input: '#include <pthread.h>\n', timeout: TIMEOUT_MS })
          .status === 0,
      packages: ['gcc', 'libc6-dev'],
      news: 'There is no C compiler: installing Debian’s with apt-get (once)',
    },
    options,
  );
  if (found === undefined)
    throw new Error('there is no C compiler (Debian: sudo apt-get install gcc libc6-dev)');
  return found;
}

/** @param source its name in `slow/`. @returns the path of the result in `folder`. @throws Error with what the compiler says */
export function compile(
  compiler: string,
  { source, kind, folder }: { source: string; kind: keyof typeof FLAGS; folder: string },
): string {
  const path = join(folder, `${source}${kind === 'library' ? '.so' : ''}`);
  const file = fileURLToPath(new URL(`slow/${source}.c`, import.meta.url));
  const { status, stderr } = spawnSync(compiler, ['-O2', ...FLAGS[kind], '-o', path, file], {
    encoding: 'utf8',
    timeout: TIMEOUT_MS,
  });
  if (status !== 0) throw new Error(`${source}.c does not compile:\n${stderr}`);
  chmodSync(path, 0o755); // Postgres may run as another account
  return path;
}
