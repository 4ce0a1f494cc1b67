// Everything that has to be done to the tables now and then, part by part: one that fails is logged and keeps no other
// from its turn.

import type { Logger } from 'pino';
import { describeError } from '../errors.ts';
import type { DatabaseConnection } from './database.ts';
import { keepPartitions } from './partitions.ts';
import { AGING, ageOut } from './retention.ts';

/**
 * One run. Never rejects; ends soon when `signal` is aborted.
 * @returns false when there was more to delete than a run takes: run it again soon.
 */
export async function keepUp(
  connection: DatabaseConnection,
  options: { retentionDays: number; signal?: AbortSignal; log: Logger },
): Promise<boolean> {
  const { signal, log } = options;
  let isDone = true;
  async function part(name: string, run: () => Promise<unknown>): Promise<void> {
    if (signal?.aborted) return;
    try {
      if ((await run()) === false) isDone = false;
    } catch (error) {
      log.warn({ part: name, err: describeError(error) }, 'upkeep failed');
    }
  }
  await part('partitions', () => keepPartitions(connection, options));
  for (const aging of AGING) await part(aging.name, () => ageOut(connection, aging, options));
  return isDone;
}
