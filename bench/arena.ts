// What a run has for itself alone, and what is removed after it, also after a failure.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Stage } from './stage.ts';

/** A run's name, and what is removed after it. */
export type Arena = { readonly run: string; readonly cleanup: AsyncDisposableStack };

/** Time for what a run leaves to do: sessions to close, a last flush. */
const SETTLE_MS = 150;

/** Ends the part after the run, also after a failure, and before the parts that were started earlier. */
export function endAfter<T extends { readonly end: () => Promise<void> }>(
  cleanup: AsyncDisposableStack,
  part: T,
): T {
  cleanup.defer(async () => {
    await part.end();
    await sleep(SETTLE_MS);
  });
  return part;
}

/**
 * Creates the run's database, which is dropped after the run. The checkpoint is made now, so that none is made during the run:
 * after one, each page goes into the WAL as a whole. @returns its URL
 */
export async function createRunDatabase(
  cleanup: AsyncDisposableStack,
  { databases }: Stage,
  run: string,
  template?: 'template0',
): Promise<string> {
  cleanup.defer(() => databases.drop(databaseName(run)));
  const url = await databases.create(databaseName(run), template);
  await databases.run(databaseName(run), ['checkpoint']);
  return url;
}

export const databaseName = (run: string) => `bench_${run}`;
