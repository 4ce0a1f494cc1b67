// `npm test`: format, lint, types and all tests, exactly what CI runs. Tests get a Postgres and a RabbitMQ of
// their own. All steps run even if one fails; the last line counts them. With arguments, vitest alone, with them.

import { join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { FAILED, runSteps, runTests, tallyAll, type Tally } from './checks.ts';
import { createProgress, explain, type Progress } from './output.ts';
import { ROOT } from './relay.ts';
import { findChromium, WITHOUT_CHROMIUM } from './services/find-chromium.ts';
import { chooseEngine } from './services/find-ffmpeg.ts';
import { findOldNode, WITHOUT_OLD_NODE } from './services/find-node.ts';
import { findGo, WITHOUT_GO } from './services/find-go.ts';
import { findPython, WITHOUT_PYTHON } from './services/find-python.ts';
import { makeThrowAwayFolder, roomInMemory } from './services/folders.ts';
import type { Guard } from './services/guard.ts';
import { startPostgres } from './services/postgres.ts';
import { startRabbitmq } from './services/rabbitmq.ts';

/**
 * Without fsync, since the server is deleted after the run and each test's database has 600 files to sync. A killed process
 * loses nothing by it, and tests that kill Postgres start servers of their own. Without autovacuum, which hundreds of databases
 * would keep busy all the time.
 */
const THROWN_AWAY = { fsync: 'off', full_page_writes: 'off', autovacuum: 'off' } as const;

/** Hundreds of databases of 5 MiB, and one with a million deliveries. */
const DATABASES_BYTES = 8 * 2 ** 30;

/** What did not run, by the variable that names the program it needs. */
const WITHOUT = {
  TEST_CHROMIUM: WITHOUT_CHROMIUM,
  TEST_OLD_NODE: WITHOUT_OLD_NODE,
  TEST_PYTHON: WITHOUT_PYTHON,
  TEST_GO: WITHOUT_GO,
};

/** Tests that need no services (vitest.config.ts). */
const PURE = /^test\/(?:unit|property)\b/;

async function run(guard: Guard, vitestArgs: string[]): Promise<Tally[]> {
  const progress = createProgress();
  const folder = makeThrowAwayFolder(guard);
  const all = { guard, folder, progress };
  if (arePure(vitestArgs)) return [await runTests(vitestArgs, all)];
  // These run at once. The tests run after them, since their times must not be disturbed.
  const [services, results] = await Promise.all([
    startServices(guard, folder, progress),
    vitestArgs.length > 0 ? [] : runSteps(all),
  ]);
  const tests = services === undefined ? FAILED : await runTests(vitestArgs, all, services);
  for (const [name, withoutIt] of Object.entries(WITHOUT))
    if (services?.[name] === '') progress.note(withoutIt);
  return [...results, tests];
}

/** Whether the arguments name tests, and only such as need no services. */
function arePure(vitestArgs: string[]): boolean {
  const { positionals: paths } = parseArgs({
    args: vitestArgs,
    options: { testNamePattern: { type: 'string', short: 't' } },
    allowPositionals: true,
    strict: false,
  });
  return paths.length > 0 && paths.every((path) => PURE.test(relative(ROOT, resolve(path))));
}

/** Undefined if one does not start: the reason is printed. */
async function startServices(
  guard: Guard,
  folder: string,
  { during, note }: Progress,
): Promise<NodeJS.ProcessEnv | undefined> {
  const { TEST_DATABASE_URL, TEST_AMQP_URL } = process.env;
  const isThrownAway = TEST_DATABASE_URL === undefined;
  try {
    const [databaseUrl, amqpUrl, chromium, oldNode, python, go] = await Promise.all([
      TEST_DATABASE_URL ??
        during('Postgres', async () => {
          const place = makeThrowAwayFolder(guard, roomInMemory(DATABASES_BYTES));
          const dir = join(place, 'postgres');
          const postgres = await startPostgres({ dir, guard, log: note, settings: THROWN_AWAY });
          return postgres.url;
        }),
      TEST_AMQP_URL ??
        during('RabbitMQ', async () => {
          const rabbitmq = await startRabbitmq({ dir: join(folder, 'rabbitmq'), guard, log: note });
          return rabbitmq.url;
        }),
      findChromium({ guard, logFile: join(folder, 'install-chromium.log'), log: note }),
      findOldNode({ guard, logFile: join(folder, 'install-node.log'), log: note }),
      findPython({ guard, logFile: join(folder, 'install-python.log'), log: note }),
      findGo({ guard, logFile: join(folder, 'install-go.log'), log: note }),
      // For the sandbox's conversions: without ffmpeg their tests are skipped, and say so.
      chooseEngine({ guard, logFile: join(folder, 'install-ffmpeg.log'), log: note }),
    ]);
    return {
      TEST_DATABASE_URL: databaseUrl,
      TEST_AMQP_URL: amqpUrl,
      TEST_CHROMIUM: chromium ?? '',
      TEST_OLD_NODE: oldNode ?? '',
      TEST_PYTHON: python ?? '',
      TEST_GO: go ?? '',
      // Its databases are deleted with its folder: dropping each of them would take half a minute.
      ...(isThrownAway && { TEST_POSTGRES_IS_THROWN_AWAY: 'true' }),
    };
  } catch (error) {
    note(explain(error));
    return undefined;
  }
}

process.exit(await tallyAll((guard) => run(guard, process.argv.slice(2))));
