// A folder of its own for each conversion. It goes when the conversion is over, however that ended.

import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';

/** `parent` is made if it is not there. Nobody else on the machine can look into the folder. */
export async function withWorkFolder<T>(parent: string, work: (folder: string) => Promise<T>): Promise<T> {
  await mkdir(parent, { recursive: true, mode: 0o700 });
  const folder = await mkdtemp(join(parent, 'tallyhook-conversion-'));
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 3 });
  }
}
