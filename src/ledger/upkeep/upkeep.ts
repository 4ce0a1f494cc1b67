// Keeps the tables in order: makes and drops partitions, and deletes or sums up old rows, at start and then every hour. A part
// that fails is logged and does not stop the other parts.

import type { Config } from '../../config.ts';
import { describeError } from '../../base/errors.ts';
import type { Logger } from '../../base/log/log.ts';
import type { Parts } from '../../base/parts.ts';
import type { DatabaseConnection } from '../sessions/database.ts';
import type { BeforeDrop } from './drops.ts';
import { keepPartitions } from './partitions.ts';
import { AGING, ageOut } from './retention.ts';

const INTERVAL_MS = 60 * 60 * 1_000;
/** After a run that left something to do. Not sooner, so that the database has most of its time for other work. */
const CATCH_UP_MS = 10_000;

export type Upkeep = {
  readonly start: () => void;
  /** Starts nothing more. At shutdown the service then waits for the part that is under way. */
  readonly end: () => void;
};

export function createUpkeep(
  config: Config,
  database: DatabaseConnection,
  { log, started, beforeDrop }: Pick<Parts, 'log' | 'started'> & { beforeDrop?: BeforeDrop | undefined },
): Upkeep {
  const { retentionDays } = config.database;
  const ending = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let running = Promise.resolve();

  async function run(): Promise<void> {
    const isDone = await keepUp(database, { retentionDays, beforeDrop, signal: ending.signal, log });
    if (!ending.signal.aborted) timer = setTimeout(start, isDone ? INTERVAL_MS : CATCH_UP_MS);
  }

  function start(): void {
    running = run();
  }

  function end(): void {
    ending.abort();
    clearTimeout(timer);
  }

  started.defer(() => {
    end();
    return running;
  });
  return { start, end };
}

/**
 * One run. Never rejects. Ends soon after `signal` is aborted.
 * @returns false if there was more to do than a run does: run it again soon
 */
export async function keepUp(
  connection: DatabaseConnection,
  options: { retentionDays: number; beforeDrop?: BeforeDrop | undefined; signal?: AbortSignal; log: Logger },
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
  await part('partitions', async () => !(await keepPartitions(connection, options)).hasMore);
  for (const aging of AGING) await part(aging.name, () => ageOut(connection, aging, options));
  return isDone;
}
