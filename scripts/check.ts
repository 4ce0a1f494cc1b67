// `npm test`: format, lint, types and all tests, exactly what CI runs. Tests get a Postgres and a RabbitMQ of
// their own. All steps run even if one fails; the last line counts them. With arguments, vitest alone, with them.

import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Ending, endOnRequest } from './ending.ts';
import { complain, createProgress, explain, type Progress, say } from './output.ts';
import { ROOT } from './relay.ts';
import { chooseEngine } from './services/find-ffmpeg.ts';
import { makeFolder, makeThrowAwayFolder, roomInMemory } from './services/folders.ts';
import { createGuard, type Guard } from './services/guard.ts';
import { startPostgres } from './services/postgres.ts';
import { startRabbitmq } from './services/rabbitmq.ts';

type Tally = { readonly passed: number; readonly failed: number; readonly skipped: number };

/** The parts of vitest's JSON report that are read. */
type Report = {
  readonly success: boolean;
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
  readonly numTodoTests: number;
  readonly testResults: readonly {
    readonly status: string;
    readonly assertionResults: readonly { readonly status: string }[];
  }[];
};

const STEPS = {
  format: ['biome', 'format', '.'],
  lint: ['oxlint', '--type-aware', '--deny-warnings'],
  types: ['tsc'],
} as const;

const PASSED: Tally = { passed: 1, failed: 0, skipped: 0 };
const FAILED: Tally = { passed: 0, failed: 1, skipped: 0 };
/**
 * Without fsync, since the server is deleted after the run and each test's database has 600 files to sync. A killed process
 * loses nothing by it, and tests that kill Postgres start servers of their own. Without autovacuum, which hundreds of databases
 * would keep busy all the time.
 */
const THROWN_AWAY = { fsync: 'off', full_page_writes: 'off', autovacuum: 'off' } as const;

/** Hundreds of databases of 5 MiB, and one with a million deliveries. */
const DATABASES_BYTES = 8 * 2 ** 30;

const TERM = { signal: 'SIGTERM', graceMs: 10_000 } as const;

async function main(vitestArgs: string[]): Promise<number> {
  const guard = createGuard();
  const ending = endOnRequest(guard);
  let tallies: readonly Tally[] = [];
  try {
    tallies = await run(guard, vitestArgs);
  } catch (error) {
    if (!ending.isAsked()) complain(explain(error));
    tallies = [FAILED];
  } finally {
    await guard.close();
  }
  return report(tallies, ending);
}

async function run(guard: Guard, vitestArgs: string[]): Promise<Tally[]> {
  const progress = createProgress();
  const folder = makeThrowAwayFolder(guard);
  const steps = vitestArgs.length > 0 ? [] : (['format', 'lint', 'types'] as const);
  // These run at once. The tests run after them, since their times must not be disturbed.
  const [services, ...results] = await Promise.all([
    startServices(guard, folder, progress),
    ...steps.map((step) => runStep(step, { guard, folder, progress })),
  ]);
  return [
    ...results,
    services === undefined ? FAILED : await runTests(services, { guard, folder, vitestArgs }),
  ];
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
    const [databaseUrl, amqpUrl] = await Promise.all([
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
      // For the sandbox's conversions: without ffmpeg their tests are skipped, and say so.
      chooseEngine({ guard, logFile: join(folder, 'install-ffmpeg.log'), log: note }),
    ]);
    return {
      TEST_DATABASE_URL: databaseUrl,
      TEST_AMQP_URL: amqpUrl,
      // Its databases are deleted with its folder: dropping each of them would take half a minute.
      ...(isThrownAway && { TEST_POSTGRES_IS_THROWN_AWAY: 'true' }),
    };
  } catch (error) {
    note(explain(error));
    return undefined;
  }
}

async function runStep(
  step: keyof typeof STEPS,
  { guard, folder, progress }: { guard: Guard; folder: string; progress: Progress },
): Promise<Tally> {
  const [program, ...args] = STEPS[step];
  const outputFile = join(folder, `${step}.txt`);
  const output = openSync(outputFile, 'w');
  const child = guard.spawn(join(ROOT, 'node_modules/.bin', program), args, {
    cwd: ROOT,
    env: process.env,
    ending: TERM,
    output,
  });
  closeSync(output);
  try {
    await progress.during(step, async () => {
      const { code } = await child.exited;
      if (code !== 0) throw new Error(`${step} failed`);
    });
    return PASSED;
  } catch {
    progress.note(readFileSync(outputFile, 'utf8').trimEnd());
    return FAILED;
  }
}

async function runTests(
  services: NodeJS.ProcessEnv,
  { guard, folder, vitestArgs }: { guard: Guard; folder: string; vitestArgs: string[] },
): Promise<Tally> {
  const reportFile = join(folder, 'vitest.json');
  // The tests' temporary folder is deleted with ours.
  const temporary = join(folder, 'tmp');
  makeFolder(temporary);
  // Hundreds of processes load the same modules.
  const env = {
    NODE_COMPILE_CACHE: join(folder, 'compiled'),
    ...process.env,
    ...services,
    TMPDIR: temporary,
  };
  const reporters = vitestArgs.some((argument) => argument.startsWith('--reporter'))
    ? []
    : ['--reporter=default'];
  // vitest writes colours into files and pipes, too.
  const colours = process.stdout.isTTY || process.env['FORCE_COLOR'] ? [] : ['--no-color'];
  const vitest = guard.spawn(
    join(ROOT, 'node_modules/.bin/vitest'),
    ['run', ...colours, ...reporters, '--reporter=json', `--outputFile.json=${reportFile}`, ...vitestArgs],
    { cwd: ROOT, env, ending: TERM, output: 'inherit' },
  );
  const { code } = await vitest.exited;
  return tallyTests(reportFile, code);
}

/** A file that does not load and an error outside of all tests are failures, too, and so is a run without tests. */
function tallyTests(reportFile: string, exitCode: number | null): Tally {
  let found: Report;
  try {
    found = JSON.parse(readFileSync(reportFile, 'utf8')) as Report;
  } catch {
    return FAILED;
  }
  const brokenFiles = found.testResults.filter(
    ({ status, assertionResults }) =>
      status === 'failed' && !assertionResults.some((result) => result.status === 'failed'),
  ).length;
  const failed = found.numFailedTests + brokenFiles;
  const isFailure = exitCode !== 0 || !found.success || found.numPassedTests === 0;
  return {
    passed: found.numPassedTests,
    failed: failed === 0 && isFailure ? 1 : failed,
    skipped: found.numPendingTests + found.numTodoTests,
  };
}

function report(tallies: readonly Tally[], ending: Ending): number {
  const sum = (part: keyof Tally) => tallies.reduce((total, tally) => total + tally[part], 0);
  const skipped = sum('skipped');
  say(`${sum('passed')} passed, ${sum('failed')} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
  return ending.exitCode() ?? (sum('failed') === 0 && sum('passed') > 0 ? 0 : 1);
}

process.exit(await main(process.argv.slice(2)));
