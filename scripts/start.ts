// `npm start`: runs Postgres, RabbitMQ and the relay, private to this clone, under `.local/`, and prints each event as a real
// subscriber receives it. `-- --sandbox` also runs the stand-in for the conversion service. Ctrl-C ends everything; the next
// start finds the data again. Its options are in usage/start.txt.

import { mkdirSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePlace, type Place } from '../src/sandbox/command/place.ts';
import { signingSecretIfKnown } from '../src/tools/send/secret.ts';
import { type Ending, endOnRequest } from './ending.ts';
import { forgetLocalRun, given, type LocalEnv, readLocalEnv, writeLocalEnv } from './local-env.ts';
import { choosePorts, startOnFreePorts } from './local-ports.ts';
import { localSecrets } from './local-sources.ts';
import { takeLock } from './lock.mjs';
import { findOrCreateToken, signInAddress } from './operator-token.ts';
import { complain, complainOfUsage, createProgress, explain, paint, type Progress, say } from './output.ts';
import { ROOT, startRelay, startTail } from './relay.ts';
import { startSandbox } from './sandbox.ts';
import { chooseEngine, type SandboxEngine } from './services/find-ffmpeg.ts';
import { makeFolder } from './services/folders.ts';
import { createGuard, type Guard } from './services/guard.ts';
import { findFreePort, isFree } from './services/ports.ts';
import { type PostgresServer, startPostgres } from './services/postgres.ts';
import { type RabbitmqServer, startRabbitmq } from './services/rabbitmq.ts';
import { tellOfSources } from './sources-news.ts';
import { readStartOptions, type StartOptions } from './start-options.ts';
import { printWelcome, type RunningSandbox } from './start-welcome.ts';

const LOCAL = join(ROOT, '.local');
const ENV_FILE = join(LOCAL, 'env');
const LOG_FILE = join(LOCAL, 'logs', 'tallyhook.log');
const SANDBOX_LOG_FILE = join(LOCAL, 'logs', 'sandbox.log');
const LOG_MAX_BYTES = 20 * 1024 * 1024;
const SANDBOX_PORTS = { api: 8090, files: 8091 } as const;
const RESTART_DELAY_MS = 1_000;
const TAIL_POLL_MS = 200;
const TAIL_TIMEOUT_MS = 10_000;

type Services = {
  readonly postgres: PostgresServer | undefined;
  readonly rabbitmq: RabbitmqServer | undefined;
};

async function main(): Promise<number> {
  let options: StartOptions;
  try {
    options = readStartOptions(process.argv.slice(2));
  } catch (error) {
    complainOfUsage('npm start', error);
    return 2;
  }
  try {
    makeFolder(LOCAL);
    forgetLocalRun(ENV_FILE);
    const lock = takeLock(join(LOCAL, 'start.lock'), 'scripts/start.ts');
    if ('release' in lock) return await runAlone(lock.release, options);
    const { PORT } = readLocalEnv(ENV_FILE);
    complain(
      `npm start is running in this folder already (process ${lock.holder}, port ${PORT ?? 'unknown'}).`,
    );
    complain('End it first with Ctrl-C there. Nothing was changed.');
  } catch (error) {
    complain(`\n${describe(error)}`);
  }
  return 1;
}

async function runAlone(release: () => void, options: StartOptions): Promise<number> {
  const guard = createGuard();
  const ending = endOnRequest(guard, () =>
    say('\nending: first the relay, which finishes its work, then the servers …'),
  );
  try {
    return await run(guard, ending, options);
  } catch (error) {
    if (!ending.isAsked()) throw error;
    return 0;
  } finally {
    await guard.close();
    release();
    if (ending.isAsked()) say('ended');
  }
}

async function run(guard: Guard, ending: Ending, options: StartOptions): Promise<number> {
  const progress = createProgress();
  const before = readLocalEnv(ENV_FILE);
  const secrets = localSecrets(join(LOCAL, 'sources.json'), before.SIGNING_SECRETS);
  const services = await startServices(guard, before, progress);
  const env: LocalEnv = {
    PORT: '',
    OPERATOR_PORT: '',
    DATABASE_URL: services.postgres?.url ?? given('DATABASE_URL') ?? '',
    AMQP_URL: services.rabbitmq?.url ?? given('AMQP_URL') ?? '',
    ...secrets,
    ENVIRONMENT: given('ENVIRONMENT') ?? 'test',
    TALLYHOOK_URL: '',
    TALLYHOOK_TOKEN: before.TALLYHOOK_TOKEN ?? '',
  };
  for (const service of [services.postgres, services.rabbitmq]) if (service) void keepRunning(service, guard);

  const relay = await progress.during('relay', () =>
    startOnFreePorts(
      () => choosePorts(before, progress.note),
      (ports) => {
        Object.assign(env, ports, { TALLYHOOK_URL: `http://127.0.0.1:${ports.OPERATOR_PORT}` });
        writeLocalEnv(ENV_FILE, env);
        return startRelay(guard, { env: environment(env), logFile: prepareLog() });
      },
    ),
  );
  env.TALLYHOOK_TOKEN = await progress.during('token', () =>
    findOrCreateToken({ url: env.TALLYHOOK_URL, before: env.TALLYHOOK_TOKEN, env: environment(env) }),
  );
  writeLocalEnv(ENV_FILE, env);
  const sandbox = options.sandbox ? await addSandbox(guard, env, options.sandbox, progress) : undefined;
  const tail = startTail(guard, environment(env));
  await waitForSubscriber(services.rabbitmq);
  const signIn = await signInAddress({ url: env.TALLYHOOK_URL, token: env.TALLYHOOK_TOKEN });
  printWelcome(env, { signIn, sandbox });
  tellOfSources(relay, () => {
    env.SIGNING_SECRET = signingSecretIfKnown(env) ?? env.SIGNING_SECRET;
    writeLocalEnv(ENV_FILE, env);
  });

  const first = await Promise.race([
    relay.exited.then(({ code }) => `the relay ended by itself (exit code ${code}):\n${relay.lastLog()}`),
    tail.exited.then(({ code }) => `the subscriber ended by itself (exit code ${code})`),
    ...(sandbox
      ? [
          sandbox.exited.then(
            ({ code, signal }) =>
              `the sandbox ended by itself (exit code ${code ?? signal}):\n${sandbox.lastLog()}`,
          ),
        ]
      : []),
  ]);
  if (ending.isAsked()) return 0;
  complain(`\n${first}`);
  return 1;
}

/** Uses the servers of DATABASE_URL and AMQP_URL if they are set: then our own are not started, and keep their data. */
async function startServices(
  guard: Guard,
  before: Partial<LocalEnv>,
  { during, note }: Progress,
): Promise<Services> {
  const usual = (url: string | undefined) => {
    const port = Number(url !== undefined && URL.canParse(url) ? new URL(url).port : NaN);
    return { guard, log: note, ...(port > 0 && { preferredPort: port }) };
  };
  const [postgres, rabbitmq] = await Promise.allSettled([
    given('DATABASE_URL')
      ? undefined
      : during('Postgres', () =>
          startPostgres({ ...usual(before.DATABASE_URL), dir: join(LOCAL, 'postgres') }),
        ),
    given('AMQP_URL')
      ? undefined
      : during('RabbitMQ', () => startRabbitmq({ ...usual(before.AMQP_URL), dir: join(LOCAL, 'rabbitmq') })),
  ]);
  // If neither starts, both reasons are printed.
  const faults = [postgres, rabbitmq].filter((result) => result.status === 'rejected');
  if (faults.length > 0) throw new AggregateError(faults.map(({ reason }) => reason as unknown));
  return {
    postgres: postgres.status === 'fulfilled' ? postgres.value : undefined,
    rabbitmq: rabbitmq.status === 'fulfilled' ? rabbitmq.value : undefined,
  };
}

/** The caller's variables with ours on top. The relay listens on loopback alone unless HOST is set. */
function environment(env: LocalEnv): NodeJS.ProcessEnv {
  const outside = { ...process.env };
  for (const name of ['DATABASE_URL', 'AMQP_URL', 'SIGNING_SECRETS']) delete outside[`${name}_FILE`];
  // Where a file has the secrets of `default`, the relay refuses a SIGNING_SECRETS, even if it is empty.
  if (env.SIGNING_SECRETS === '') delete outside['SIGNING_SECRETS'];
  // They are of use only with a DATABASE_URL of the caller.
  if (given('DATABASE_URL') === undefined) {
    for (const name of ['MIGRATION_DATABASE_URL', 'MIGRATION_DATABASE_URL_FILE']) delete outside[name];
  }
  const ours = Object.entries(env).filter(([name, value]) => name !== 'TALLYHOOK_TOKEN' && value !== '');
  return { HOST: '127.0.0.1', MIGRATE_ON_START: 'true', ...outside, ...Object.fromEntries(ours) };
}

/** Starts a server again when it ends by itself: you may kill one to see what happens. */
async function keepRunning(service: PostgresServer | RabbitmqServer, guard: Guard): Promise<void> {
  const name = 'ctl' in service ? 'RabbitMQ' : 'Postgres';
  for (;;) {
    await service.exited();
    if (guard.isClosing()) return;
    complain(paint('yellow', `${name} ended by itself: starting it again`));
    await sleep(RESTART_DELAY_MS);
    if (guard.isClosing()) return;
    try {
      await service.start();
      complain(paint('yellow', `${name} is back`));
    } catch (error) {
      if (!guard.isClosing()) complain(describe(error));
    }
  }
}

function prepareLog(): string {
  mkdirSync(join(LOCAL, 'logs'), { recursive: true, mode: 0o700 });
  const size = statSync(LOG_FILE, { throwIfNoEntry: false })?.size ?? 0;
  if (size > LOG_MAX_BYTES) renameSync(LOG_FILE, `${LOG_FILE}.old`);
  return LOG_FILE;
}

/** An event that is sent right after our welcome must be printed. A broker that is not ours cannot be asked. */
async function waitForSubscriber(rabbitmq: RabbitmqServer | undefined): Promise<void> {
  if (rabbitmq === undefined) return sleep(RESTART_DELAY_MS);
  const deadlineMs = performance.now() + TAIL_TIMEOUT_MS;
  while ((await rabbitmq.ctl('list_consumers', '--quiet', '--no-table-headers')).trim() === '') {
    if (performance.now() > deadlineMs) throw new Error('the subscriber does not receive');
    await sleep(TAIL_POLL_MS);
  }
}

async function usualOrFree(port: number): Promise<number> {
  return (await isFree(port)) ? port : findFreePort();
}

/** The sandbox signs with the relay's first secret, so that its webhooks are authentic. */
async function addSandbox(
  guard: Guard,
  env: LocalEnv,
  options: NonNullable<StartOptions['sandbox']>,
  { during, note }: Progress,
): Promise<RunningSandbox> {
  // A sandbox that somebody started by hand may have the usual place.
  const place: Place = freePlace(LOCAL);
  const engine = options.engine === 'simulated' ? 'simulated' : await installFfmpeg(guard, note);
  const port = await usualOrFree(SANDBOX_PORTS.api);
  const filesPort = await usualOrFree(SANDBOX_PORTS.files);
  const sandbox = await during('sandbox', () =>
    startSandbox(guard, {
      place,
      logFile: SANDBOX_LOG_FILE,
      // Of an option that comes twice, the last one counts.
      args: ['--engine', engine, ...options.args],
      signingSecret: env.SIGNING_SECRET,
      webhookUrl: `http://127.0.0.1:${env.PORT}/webhooks`,
      port,
      filesPort,
    }),
  );
  return { ...sandbox, place, engine };
}

function installFfmpeg(guard: Guard, log: (line: string) => void): Promise<SandboxEngine> {
  return chooseEngine({ guard, logFile: join(LOCAL, 'logs', 'install.log'), log });
}

function describe(error: unknown): string {
  const { code, path } = error as NodeJS.ErrnoException;
  if ((code === 'EACCES' || code === 'EPERM') && path?.startsWith(LOCAL))
    return `${path} belongs to another user, who ran npm start here before. Run it as that user, or remove .local.`;
  const explained = explain(error);
  if (!explained.includes('schema_unreleased') || given('DATABASE_URL') !== undefined) return explained;
  return `${explained}\nRemove .local/postgres to begin with an empty one: its events are gone then.`;
}

process.exit(await main());
