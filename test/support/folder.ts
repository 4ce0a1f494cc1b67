// A temporary folder for a test, which is removed after it.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export type TestFolder = AsyncDisposable & {
  /** Writes a file and returns its path. */
  readonly write: (name: string, content: string) => Promise<string>;
  readonly path: (name: string) => string;
};

export async function createFolder(): Promise<TestFolder> {
  const folder = await mkdtemp(join(tmpdir(), 'tallyhook-test-'));
  const path = (name: string) => join(folder, name);
  return {
    path,
    write: async (name, content) => {
      await writeFile(path(name), content, { mode: 0o600 });
      return path(name);
    },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}
