// Where services keep their files: throw-away folders, and a place of a clone's own for what another account
// must be able to reach.

import { createHash, randomBytes } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readSync,
  realpathSync,
  statfsSync,
} from 'node:fs';
import { freemem, tmpdir } from 'node:os';
import { join } from 'node:path';
import { accountFor, canEnter } from './account.ts';
import type { Guard } from './guard.ts';

const isRoot = () => process.getuid?.() === 0;

/** Makes a folder that goes when the guard closes. Others may pass through it but not look into it. */
export function makeThrowAwayFolder(guard: Guard, parent = temporaryFolder()): string {
  const folder = join(realpathSync(parent), `tallyhook-${randomBytes(6).toString('hex')}`);
  guard.removeInTheEnd(folder);
  makeFolder(folder);
  return folder;
}

/** A temporary folder of root's own would be closed to the account that Postgres needs. */
function temporaryFolder(): string {
  const account = accountFor();
  return account === undefined || canEnter(tmpdir(), account) ? tmpdir() : '/tmp';
}

const MEMORY = '/dev/shm';

/** A folder in memory, where there is one and it, and the machine, have so much to spare. */
export function roomInMemory(bytes: number): string | undefined {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize >= bytes && freemem() >= 2 * bytes ? MEMORY : undefined;
  } catch {
    return undefined; // not here, or not for us
  }
}

/** With its parents. Open to be passed through if we are root, since Postgres then runs under another account. */
export function makeFolder(folder: string): void {
  makeWithMode(folder, openMode());
}

/** With its parents, which are as open as `makeFolder` leaves them. Itself closed to other accounts, as what is in it. */
export function makePrivateFolder(folder: string): void {
  makeWithMode(folder, 0o700);
}

const openMode = () => (isRoot() ? 0o711 : 0o700);

/** Whatever the umask, and whatever mode it had before. */
function makeWithMode(folder: string, mode: number): void {
  mkdirSync(folder, { recursive: true, mode: openMode() });
  chmodSync(folder, mode);
}

/**
 * A folder that every account can enter, the same one each time for the same `folder`.
 * @throws Error if somebody else has put something in its place.
 */
export function makePublicPlaceFor(folder: string): string {
  const hash = createHash('sha256').update(realpathSync(folder)).digest('hex').slice(0, 12);
  const place = `/var/tmp/tallyhook-${hash}`;
  try {
    mkdirSync(place, { mode: 0o711 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  const found = lstatSync(place);
  if (!found.isDirectory() || found.uid !== process.getuid?.() || (found.mode & 0o022) !== 0)
    throw new Error(`${place} is in the way and not ours: remove it`);
  chmodSync(place, 0o711);
  return place;
}

/** The end of a log, for an error message; of what stands behind `fromByte`. */
export function lastLines(path: string, count: number, fromByte = 0): string {
  const file = openSync(path, 'r');
  try {
    const { size } = fstatSync(file);
    const buffer = Buffer.alloc(Math.min(Math.max(0, size - fromByte), 16 * 1024));
    readSync(file, buffer, 0, buffer.length, size - buffer.length);
    return buffer.toString('utf8').trimEnd().split('\n').slice(-count).join('\n');
  } finally {
    closeSync(file);
  }
}
