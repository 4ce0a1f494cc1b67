// Where a Postgres cluster of a test is: its folder, its account, and what all of its programs are started and reached by.

import { randomBytes } from 'node:crypto';
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { type Account, accountFor, giveTo } from '../../scripts/services/account.ts';
import { lastLines, makeThrowAwayFolder, roomInMemory } from '../../scripts/services/folders.ts';
import type { Guard, Guarded } from '../../scripts/services/guard.ts';
import { answers } from '../../scripts/services/ports.ts';
import { until } from './until.ts';

export type Place = {
  readonly guard: Guard;
  readonly folder: string;
  /** Of all but HAProxy: Postgres does not run as root. */
  readonly account: Account | undefined;
  /** The folder of Postgres' programs. */
  readonly binaries: string;
  readonly password: string;
};

export const USER = 'tallyhook';
export const DATABASE = 'tallyhook';

/** Of three members: the empty database, and as much WAL as is kept. */
const MEMORY_BYTES = 3 * 300 * 2 ** 20;
const KEEPER_GRACE_MS = 5_000;
const GRACE_MS = 2_000;
const LOG_LINES = 12;

const LISTEN_LIMIT_MS = 30_000;

const END_CLUSTER = readFileSync(new URL('end-cluster.sh', import.meta.url), 'utf8');

export function preparePlace(guard: Guard): Place {
  const folder = makeThrowAwayFolder(guard, roomInMemory(MEMORY_BYTES));
  const account = accountFor();
  giveTo(account, folder);
  const place = {
    guard,
    folder,
    account,
    binaries: dirname(process.env['TEST_PG_REWIND'] ?? ''),
    password: randomBytes(24).toString('hex'),
  };
  // The first, so that the guard ends it last.
  run(place, 'keeper', ['/bin/sh', '-c', END_CLUSTER], { env: { FOLDER: folder }, graceMs: KEEPER_GRACE_MS });
  return place;
}

/** Starts a program in the folder and as the account. Its output goes to the log of this name. */
export function run(
  place: Place,
  name: string,
  [program = '', ...args]: readonly string[],
  options: { env?: Record<string, string>; ending?: 'SIGTERM' | 'SIGKILL'; graceMs?: number } = {},
): Guarded {
  const { env = {}, ending = 'SIGTERM', graceMs = GRACE_MS } = options;
  const output = openSync(logOf(place, name), 'a', 0o600);
  try {
    return place.guard.spawn(program, args, {
      cwd: place.folder,
      env: { PATH: `${place.binaries}:/usr/bin:/bin`, LC_ALL: 'C.UTF-8', TZ: 'UTC', ...env },
      account: place.account,
      ending: { signal: ending, graceMs },
      output,
    });
  } finally {
    closeSync(output);
  }
}

/** Waits until it listens. @throws Error with the end of its log if it ends instead */
export async function untilListening(
  place: Pick<Place, 'folder'>,
  name: string,
  { program, port }: { program: Guarded; port: number },
): Promise<void> {
  await until(
    `${name} listens`,
    async () => {
      if (program.hasExited()) throw new Error(`${name} did not start: ${endOfLog(place, name)}`);
      return (await answers(port)) ? true : undefined;
    },
    { limitMs: LISTEN_LIMIT_MS },
  );
}

export const logOf = ({ folder }: Pick<Place, 'folder'>, name: string) => join(folder, `${name}.log`);

export const endOfLog = (place: Pick<Place, 'folder'>, name: string) =>
  `${name}:\n${lastLines(logOf(place, name), LOG_LINES)}`;

/** @returns the path of a file that only the account can read */
export function writeOwn({ folder, account }: Place, name: string, content: string): string {
  const path = join(folder, name);
  writeFileSync(path, content, { mode: 0o600 });
  giveTo(account, path);
  return path;
}

/** The cluster's name. */
export const scopeOf = ({ folder }: Pick<Place, 'folder'>) => basename(folder);

/** As a superuser. `hosts`: `host:port`, or several with commas between them. */
export function urlOf(
  { password }: Pick<Place, 'password'>,
  { hosts, database = DATABASE }: { hosts: string; database?: string },
): string {
  return `postgres://${USER}:${password}@${hosts}/${database}`;
}
