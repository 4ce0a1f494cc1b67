// Makes the folders of services: throw-away ones, and for each clone a place that other accounts can reach.

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

/** Makes a folder that is deleted when the guard closes. Other accounts may pass through it but not list it. */
export function makeThrowAwayFolder(guard: Guard, parent = temporaryFolder()): string {
  const folder = join(realpathSync(parent), `tallyhook-${randomBytes(6).toString('hex')}`);
  guard.removeInTheEnd(folder);
  makeFolder(folder);
  return folder;
}

/** Root's own temporary folder may be closed to the account that Postgres runs as. */
function temporaryFolder(): string {
  const account = accountFor();
  return account === undefined || canEnter(tmpdir(), account) ? tmpdir() : '/tmp';
}

const MEMORY = '/dev/shm';

/** A folder in memory, if there is one and both it and the machine have so much free. */
export function roomInMemory(bytes: number): string | undefined {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize >= bytes && freemem() >= 2 * bytes ? MEMORY : undefined;
  } catch {
    return undefined; // there is none, or we may not use it
  }
}

/** Makes its parents, too. If we are root, others may pass through them, since Postgres then runs as another account. */
export function makeFolder(folder: string): void {
  makeWithMode(folder, openMode());
}

/** Makes its parents, too, as `makeFolder` does. The folder itself is closed to other accounts. */
export function makePrivateFolder(folder: string): void {
  makeWithMode(folder, 0o700);
}

const openMode = () => (isRoot() ? 0o711 : 0o700);

/** With this mode whatever the umask is, and whatever mode it had before. */
function makeWithMode(folder: string, mode: number): void {
  mkdirSync(folder, { recursive: true, mode: openMode() });
  chmodSync(folder, mode);
}

/**
 * A folder that every account can enter; always the same one for the same `folder`.
 * @throws Error if there is something of another owner in its place
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

/** The last lines of a log after `fromByte`, for an error message. */
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
