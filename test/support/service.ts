// Starts the real service through `startService`, on free ports and with a database of its own.

import { type Env, loadConfig } from '../../src/config.ts';
import { type Service, startService } from '../../src/service.ts';
import type { WatchTiming } from '../../src/watch/index.ts';
import { UNHEARD } from './bus.ts';
import { createTestDatabase, type TestDatabase } from './database.ts';
import { serviceEnv } from './service-env.ts';
import { tellStart } from './starts.ts';
import { createTestLog, type TestLog } from './test-log.ts';

export { createTestLog } from './test-log.ts';

export type TestService = AsyncDisposable & {
  readonly service: Service;
  /** `http://127.0.0.1:<port>/webhooks` */
  readonly webhooks: string;
  readonly intake: string;
  readonly operators: string;
  readonly database: TestDatabase;
  readonly exchange: string;
  /** Everything logged so far, parsed. */
  readonly log: readonly Record<string, unknown>[];
};

/**
 * `env` overrides single variables. Give `database` or `exchange` to share them between replicas. Without `database` a new
 * one is made, and disposed of with the service. Give `testLog` to read the log while the service starts.
 */
export async function startTestService(
  options: {
    env?: Env;
    database?: TestDatabase;
    exchange?: string;
    testLog?: TestLog;
    watchTiming?: WatchTiming;
  } = {},
): Promise<TestService> {
  tellStart('service');
  const database = options.database ?? (await createTestDatabase());
  const exchange = options.exchange ?? UNHEARD;
  const { log, lines } = options.testLog ?? createTestLog();
  const service = await start().catch(async (error: unknown) => {
    if (options.database === undefined) await database[Symbol.asyncDispose]();
    throw error;
  });
  async function start(): Promise<Service> {
    const config = loadConfig({ ...serviceEnv({ databaseUrl: database.url, exchange }), ...options.env });
    return startService(config, { log, ...(options.watchTiming && { watchTiming: options.watchTiming }) });
  }
  const intake = `http://127.0.0.1:${service.port}`;
  return {
    service,
    intake,
    webhooks: `${intake}/webhooks`,
    operators: `http://127.0.0.1:${service.operatorPort}`,
    database,
    exchange,
    log: lines,
    [Symbol.asyncDispose]: async () => {
      await service.stop();
      if (options.database === undefined) await database[Symbol.asyncDispose]();
    },
  };
}
