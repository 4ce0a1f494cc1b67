// A small disk for Postgres that can be filled: a tmpfs, where this account may mount one. A guarded process unmounts it,
// also when the harness is killed.

import { spawnSync } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, rmSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import type { Guard } from '../../scripts/services/guard.ts';
import { until } from '../support/until.ts';

export type Disk = AsyncDisposable & {
  readonly path: string;
  /** Takes all the space that is left. */
  readonly fill: () => Promise<void>;
  readonly free: () => void;
};

/** Mounts, creates a file to say so, and unmounts on SIGTERM; lazily (-l), since Postgres may still have files open there. */
const KEEPER = `mount -t tmpfs -o "size=$2m,mode=0711" tallyhook "$1" || exit 1
trap 'umount -l "$1"; exit 0' TERM
: > "$1/.mounted"
while :; do sleep 0.2; done`;

const MOUNT_LIMIT_MS = 5_000;
const BLOCK_BYTES = [8 * 1024 * 1024, 64 * 1024, 4_096] as const;

/** Undefined where no tmpfs can be mounted; the reason is logged. */
export async function mountDisk(options: {
  guard: Guard;
  folder: string;
  megabytes: number;
  log: (line: string) => void;
}): Promise<Disk | undefined> {
  const { guard, folder, megabytes, log } = options;
  if (process.platform !== 'linux' || process.getuid?.() !== 0) {
    log('disk-full is skipped: only root on Linux may mount a tmpfs');
    return undefined;
  }
  const path = join(folder, 'disk');
  mkdirSync(path, { mode: 0o711 });
  const output = openSync(join(folder, 'disk.log'), 'a', 0o600);
  const keeper = guard.spawn('/bin/sh', ['-c', KEEPER, 'sh', path, String(megabytes)], {
    cwd: '/',
    env: { PATH: process.env['PATH'] },
    ending: { signal: 'SIGTERM', graceMs: 2_000 },
    lastSignal: 'SIGKILL',
    endsLast: true,
    output,
  });
  closeSync(output);
  const mounted = () => existsSync(join(path, '.mounted')) || (keeper.hasExited() ? false : undefined);
  if (!(await until('the tmpfs is mounted', mounted, { limitMs: MOUNT_LIMIT_MS }))) {
    log('disk-full is skipped: this account may not mount a tmpfs here');
    return undefined;
  }
  const ballast = join(path, 'ballast');
  return {
    path,
    fill: () => fill(ballast),
    free: () => rmSync(ballast, { force: true }),
    [Symbol.asyncDispose]: async () => {
      await keeper.end();
      // If it was killed after its grace time, it could not unmount.
      if (existsSync(join(path, '.mounted'))) spawnSync('umount', ['-l', path]);
    },
  };
}

/** Asynchronously: this process also sends and receives, and must not be blocked. */
async function fill(path: string): Promise<void> {
  await using file = await open(path, 'a', 0o600);
  for (const bytes of BLOCK_BYTES) {
    const block = Buffer.alloc(bytes);
    while (await writes(file, block));
  }
}

async function writes(file: FileHandle, block: Buffer): Promise<boolean> {
  try {
    return (await file.write(block)).bytesWritten === block.length;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOSPC') return false;
    throw error;
  }
}
