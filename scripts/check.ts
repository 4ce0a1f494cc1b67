// `npm test`: format, lint, types, and the tests that fit between two changes; with `--all`, as `npm run test:all` and CI have it,
// all of them. Tests get a Postgres and a RabbitMQ of their own. All steps run even if one fails; the last line counts them. With
// vitest's arguments, the tests alone.

import { join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { ONLY_IN_ALL } from '../test/only-in-all.ts';
import { changedFiles, testsReachedBy } from './changed.ts';
import { FAILED, runSteps, runTests, tallyAll, type Tally } from './checks.ts';
import { createProgress, explain, type Progress, say } from './output.ts';
import { choosePatience } from './patience.ts';
import { profileTable, readProfile, secondsOf, WITHOUT_PROFILE } from './profile.ts';
import { ROOT } from './relay.ts';
import { findChromium, WITHOUT_CHROMIUM } from './services/find-chromium.ts';
import { DEPLOY_PROGRAMS } from './services/find-deploy-programs.ts';
import { chooseEngine } from './services/find-ffmpeg.ts';
import { findOldNode, WITHOUT_OLD_NODE } from './services/find-node.ts';
import { findGo, WITHOUT_GO } from './services/find-go.ts';
import { PATRONI_PROGRAMS } from './services/find-patroni.ts';
import { findPgbouncer, WITHOUT_PGBOUNCER } from './services/find-pgbouncer.ts';
import { findPrevious, WITHOUT_PREVIOUS } from './services/find-previous.ts';
import { findPrograms, type NamedProgram } from './services/find-program.ts';
import { findPython, WITHOUT_PYTHON } from './services/find-python.ts';
import { findSpin, WITHOUT_SPIN } from './services/find-spin.ts';
import { makeThrowAwayFolder, roomInMemory } from './services/folders.ts';
import type { Guard } from './services/guard.ts';
import { startPostgres } from './services/postgres.ts';
import { startRabbitmq } from './services/rabbitmq.ts';

/**
 * Without fsync, since the server is deleted after the run and each test's database has 600 files to sync. A killed process
 * loses nothing by it, and tests that kill Postgres start servers of their own. Without autovacuum, which hundreds of databases
 * would keep busy all the time.
 */
const THROWN_AWAY = {
  fsync: 'off',
  full_page_writes: 'off',
  autovacuum: 'off',
  // Each worker may run five services at once, of 20 sessions each.
  max_connections: '500',
} as const;

/** Hundreds of databases of 5 MiB, and one with a million deliveries. */
const DATABASES_BYTES = 8 * 2 ** 30;

/** That tests need. */
type Program = NamedProgram & { readonly isOnlyInAll?: boolean };

const PROGRAMS: readonly Program[] = [
  { name: 'chromium', variable: 'TEST_CHROMIUM', find: findChromium, without: WITHOUT_CHROMIUM },
  { name: 'node', variable: 'TEST_OLD_NODE', find: findOldNode, without: WITHOUT_OLD_NODE },
  { name: 'python', variable: 'TEST_PYTHON', find: findPython, without: WITHOUT_PYTHON },
  { name: 'go', variable: 'TEST_GO', find: findGo, without: WITHOUT_GO },
  { name: 'pgbouncer', variable: 'TEST_PGBOUNCER', find: findPgbouncer, without: WITHOUT_PGBOUNCER },
  { name: 'spin', variable: 'TEST_SPIN', find: findSpin, without: WITHOUT_SPIN },
  ...PATRONI_PROGRAMS,
  ...DEPLOY_PROGRAMS,
  { name: 'previous', variable: 'TEST_PREVIOUS', find: findPrevious, without: WITHOUT_PREVIOUS },
];

/** Tests that need no services (vitest.config.ts). */
const PURE = /^test\/(?:unit|property)\b/;

type Arguments = {
  readonly all: boolean;
  readonly profile: boolean;
  /** The commit since which changes count, if only what they reach is to run. */
  readonly changedSince: string | undefined;
  /** Those of vitest. */
  readonly others: readonly string[];
  /** The tests that they name. */
  readonly paths: readonly string[];
};

const OURS = /^--(?:all|profile|changed(?:=(?<base>.+))?)$/;

/** Options of ours are taken, and all others left to vitest. */
function readArguments(args: readonly string[]): Arguments {
  const others = args.filter((argument) => !OURS.test(argument));
  const { positionals: paths } = parseArgs({
    args: others,
    options: { testNamePattern: { type: 'string', short: 't' } },
    allowPositionals: true,
    strict: false,
  });
  const changed = args.find((argument) => argument.startsWith('--changed'));
  return {
    all: args.includes('--all'),
    profile: args.includes('--profile'),
    changedSince: changed && (OURS.exec(changed)?.groups?.['base'] ?? 'HEAD'),
    others,
    paths,
  };
}

/** The same with the tests that the change reaches, without those that only `npm run test:all` has; undefined if there are none. */
async function withReached(args: Arguments): Promise<Arguments | undefined> {
  if (args.changedSince === undefined) return args;
  const changed = changedFiles(args.changedSince);
  const reached = await testsReachedBy(changed);
  const paths = reached.filter((file) => args.all || !ONLY_IN_ALL.has(file));
  say(`changed files: ${changed.length}; test files that they reach: ${reached.length}`);
  if (paths.length < reached.length)
    say(`${reached.length - paths.length} of these run with npm run test:all only`);
  return paths.length === 0 ? undefined : { ...args, paths, others: [...args.others, ...paths] };
}

type Services = {
  readonly env: NodeJS.ProcessEnv;
  /** Of the servers that we started, by name. */
  readonly pids: Readonly<Record<string, number>>;
};

const NO_SERVICES: Services = { env: {}, pids: {} };

async function run(guard: Guard, given: Arguments): Promise<Tally[]> {
  const args = await withReached(given);
  if (args === undefined) return [];
  const progress = createProgress();
  const folder = makeThrowAwayFolder(guard);
  const all = { guard, folder, progress };
  const { factor, why } = await choosePatience(process.env['TEST_PATIENCE'], folder);
  progress.note(`limits for tests that hang × ${factor} (${why})`);
  const profile = args.profile ? join(folder, 'profile') : '';
  const isNamed = args.others.length > 0;
  const env = {
    TEST_PATIENCE: String(factor),
    TEST_PROFILE: profile,
    TEST_LEAVES_OUT: leftOut({ isNamed, all: args.all }),
  };
  const runWith = (services: Services) =>
    runTests(args.others, all, { ...services.env, ...env }).finally(() => {
      if (args.profile) printProfile(profile, services);
    });
  if (arePure(args.paths)) return [await runWith(NO_SERVICES)];
  // These run at once. The tests run after them, since their times must not be disturbed.
  const [services, results] = await Promise.all([
    startServices(guard, folder, progress, programsFor(args)),
    isNamed ? [] : runSteps(all),
  ]);
  const tests = services === undefined ? FAILED : await runWith(services);
  for (const { variable, without } of PROGRAMS) if (services?.env[variable] === '') progress.note(without);
  if (!args.all && !isNamed)
    say(`${ONLY_IN_ALL.size} files and the skipped tests run with npm run test:all only`);
  return [...results, tests];
}

/** See test/only-in-all.ts. */
function leftOut({ isNamed, all }: { isNamed: boolean; all: boolean }): string {
  if (isNamed) return '';
  return all ? 'short' : 'long';
}

/** After the tests, while the servers still run. */
function printProfile(path: string, { pids }: Services): void {
  const servers: Record<string, number> = {};
  for (const [name, pid] of Object.entries(pids)) servers[name] = secondsOf(pid) ?? 0;
  const lines =
    secondsOf(process.pid) === undefined ? [WITHOUT_PROFILE] : profileTable(readProfile(path), servers);
  for (const line of lines) say(line);
}

/** Whether tests are named, and only such as need no services. */
function arePure(paths: readonly string[]): boolean {
  return paths.length > 0 && paths.every((path) => PURE.test(relative(ROOT, resolve(path))));
}

/** Undefined if one does not start: the reason is printed. */
async function startServices(
  guard: Guard,
  folder: string,
  { during, note }: Progress,
  programs: readonly Program[],
): Promise<Services | undefined> {
  const { TEST_DATABASE_URL, TEST_AMQP_URL } = process.env;
  const isThrownAway = TEST_DATABASE_URL === undefined;
  const pids: Record<string, number> = {};
  try {
    const [databaseUrl, amqpUrl, found] = await Promise.all([
      TEST_DATABASE_URL ??
        during('Postgres', async () => {
          const place = makeThrowAwayFolder(guard, roomInMemory(DATABASES_BYTES));
          const dir = join(place, 'postgres');
          const postgres = await startPostgres({ dir, guard, log: note, settings: THROWN_AWAY });
          pids['Postgres'] = postgres.pid;
          return postgres.url;
        }),
      TEST_AMQP_URL ??
        during('RabbitMQ', async () => {
          const rabbitmq = await startRabbitmq({ dir: join(folder, 'rabbitmq'), guard, log: note });
          pids['RabbitMQ'] = rabbitmq.pid;
          return rabbitmq.url;
        }),
      findPrograms(programs, { guard, folder, log: note }),
      // For the sandbox's conversions: without ffmpeg their tests are skipped, and say so.
      chooseEngine({ guard, logFile: join(folder, 'install-ffmpeg.log'), log: note }),
    ]);
    const env = {
      TEST_DATABASE_URL: databaseUrl,
      TEST_AMQP_URL: amqpUrl,
      ...found,
      // Its databases are deleted with its folder: dropping each of them would take half a minute.
      ...(isThrownAway && { TEST_POSTGRES_IS_THROWN_AWAY: 'true' }),
    };
    return { env, pids };
  } catch (error) {
    note(explain(error));
    return undefined;
  }
}

/** Without those that no test of this run needs, so that none of them is installed for it. */
function programsFor({ all, paths }: Arguments): readonly Program[] {
  const hasDeploy = all || paths.some((path) => path.includes('deploy'));
  return PROGRAMS.filter(({ isOnlyInAll = false }) => hasDeploy || !isOnlyInAll);
}

process.exit(await tallyAll((guard) => run(guard, readArguments(process.argv.slice(2)))));
