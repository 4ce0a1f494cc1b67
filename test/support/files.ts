// A file server on a folder of the test's own, with a file in it, and a secret file outside it.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type FileServer, startFileServer } from '../../src/sandbox/files/file-server.ts';
import { createFolder } from './folder.ts';
import { silentLog } from './media.ts';

export const MAX_BYTES = 1_000;

type TestFiles = AsyncDisposable & {
  server: FileServer;
  folder: string;
  at: (name: string) => string;
};

export async function startTestFiles(): Promise<TestFiles> {
  const parent = await createFolder();
  const folder = parent.path('served');
  const server = await startFileServer({
    host: '127.0.0.1',
    port: 0,
    folder,
    maxBytes: MAX_BYTES,
    log: silentLog,
  });
  await writeFile(join(folder, 'clip.mp4'), '0123456789');
  await parent.write('secret', 'not to be served');
  return {
    server,
    folder,
    at: (name) => `${server.url}/${name}`,
    [Symbol.asyncDispose]: async () => {
      await server.stop();
      await parent[Symbol.asyncDispose]();
    },
  };
}

export const put = (url: string, body: string, headers: Record<string, string> = {}) =>
  fetch(url, { method: 'PUT', body, headers });
