// Stores an upload in a folder. It is written under a temporary name, which the server does not serve, and renamed at the
// end. So a reader gets either the old file or the complete new one.

import { randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { lstat, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

export type StoreResult =
  | { readonly outcome: 'created' | 'replaced'; readonly bytes: number }
  | { readonly outcome: 'too_large' | 'full' | 'not_a_file' };

/** Enough for a developer's clips. More files are a mistake. */
const MAX_FILES = 1_000;

/** @throws the body's error, such as a broken connection. The folder is then unchanged. */
export async function storeFile(
  body: Readable,
  { folder, name, maxBytes }: { folder: string; name: string; maxBytes: number },
): Promise<StoreResult> {
  const target = join(folder, name);
  const kind = await kindOf(target);
  if (kind === 'other') return { outcome: 'not_a_file' };
  if (kind === 'none' && (await readdir(folder)).length >= MAX_FILES) return { outcome: 'full' };
  const temporary = join(folder, `.${randomUUID()}.part`);
  try {
    const bytes = await write(body, temporary, maxBytes);
    if (bytes === undefined) return { outcome: 'too_large' };
    await rename(temporary, target);
    return { outcome: kind === 'file' ? 'replaced' : 'created', bytes };
  } finally {
    await rm(temporary, { force: true });
  }
}

/** A symbolic link is `other`, since it can lead out of the folder. */
export async function kindOf(path: string): Promise<'file' | 'other' | 'none'> {
  try {
    return (await lstat(path)).isFile() ? 'file' : 'other';
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 'none';
    throw error;
  }
}

/** @returns the bytes written, or undefined if there are more than `maxBytes`. */
async function write(body: Readable, path: string, maxBytes: number): Promise<number | undefined> {
  let bytes = 0;
  async function* counted(chunks: AsyncIterable<Buffer>) {
    for await (const chunk of chunks) {
      bytes += chunk.length;
      if (bytes > maxBytes) return;
      yield chunk;
    }
  }
  const file = createWriteStream(path, { flags: 'wx', mode: 0o600 });
  // A destroyed body would close the connection before the response is sent.
  await pipeline(counted(body.iterator({ destroyOnReturn: false })), file);
  return bytes > maxBytes ? undefined : bytes;
}
