// A replica as a process whose watch is faster than the world: `serve` with a minute made a second. Also for services in the process.

import { pathToFileURL } from 'node:url';
import { loadConfig } from '../../src/config.ts';
import { createLog, lastLines } from '../../src/base/log/log.ts';
import { createLogOutput } from '../../src/base/log/log-output.ts';
import { startService } from '../../src/service.ts';
import type { WatchTiming } from '../../src/watch/index.ts';
import { patience } from './patience.ts';

/** Where a minute is a second. Leases grow with the machine: a slow replica must not lose one. */
export const QUICK: WatchTiming = {
  lookMs: 100,
  leaseMs: patience(2_000),
  sampleMs: 50,
  beatMs: 100,
  lateAfterS: patience(2_000) / 1_000,
  scale: 1 / 60,
};

/** Hold times of seconds are gone, too. */
export const AT_ONCE: WatchTiming = { ...QUICK, scale: 1 / 1_000 };

async function serve(): Promise<void> {
  const config = loadConfig(process.env);
  const log = createLog({ ...config.log, output: createLogOutput() });
  const stop = new Promise((resolve) => process.once('SIGTERM', resolve));
  const service = await startService(config, { log, watchTiming: QUICK });
  await stop;
  await service.stop();
  await lastLines(log);
  process.exit();
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) await serve();
