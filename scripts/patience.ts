// Measures how slow this machine is at the moment, so that limits that only end a hanging test can grow with it. Takes about
// a third of a second on a quiet machine.

import { pbkdf2 } from 'node:crypto';
import { closeSync, constants, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** What the same takes on the quiet machine that the limits were chosen on: two cores, and a disk with a cache. */
const REFERENCE = { computingMs: 160, writeMs: 0.17 } as const;

/** A test that hangs is still ended after ten minutes. */
const MAX_FACTOR = 5;

/** Two at once, as tests and their servers keep two cores busy. */
const AT_ONCE = 2;
const ITERATIONS = 400_000;

/** As Postgres writes its log: pages of 8 KiB, each waited for. */
const PAGE = Buffer.alloc(8_192);
const WRITES = 50;
/** A disk that is slower than this has the largest factor anyway. */
const WRITING_LIMIT_MS = WRITES * REFERENCE.writeMs * MAX_FACTOR;

const derive = promisify(pbkdf2);

export type Patience = {
  /** From 1 to MAX_FACTOR, with one decimal. */
  readonly factor: number;
  /** How it came about, for a person. */
  readonly why: string;
};

/** `given`: a factor that a person has set, from 1 up. `folder` must be on the disk that tests write to. @throws Error if `given` is none */
export async function choosePatience(given: string | undefined, folder: string): Promise<Patience> {
  if (given === undefined || given === '') return measurePatience(folder);
  const factor = Number(given);
  if (!(factor >= 1 && factor <= 100)) throw new Error('TEST_PATIENCE must be a number from 1 to 100');
  return { factor, why: 'as TEST_PATIENCE says' };
}

async function measurePatience(folder: string): Promise<Patience> {
  const processor = (await computingMs()) / REFERENCE.computingMs;
  const disk = writeMs(join(folder, 'patience')) / REFERENCE.writeMs;
  const factor = Math.min(MAX_FACTOR, Math.max(1, processor, disk));
  return { factor: round(factor), why: `processor ${round(processor)}, disk ${round(disk)}` };
}

const round = (factor: number) => Math.round(factor * 10) / 10;

async function computingMs(): Promise<number> {
  const startMs = performance.now();
  // On threads of Node's pool.
  await Promise.all(Array.from({ length: AT_ONCE }, () => derive('word', 'salt', ITERATIONS, 64, 'sha512')));
  return performance.now() - startMs;
}

/** The mean time of a synchronous write. */
function writeMs(path: string): number {
  const { O_WRONLY, O_CREAT, O_DSYNC } = constants;
  const file = openSync(path, O_WRONLY | O_CREAT | (O_DSYNC ?? constants.O_SYNC), 0o600);
  const startMs = performance.now();
  const takenMs = () => performance.now() - startMs;
  let writes = 0;
  try {
    while (writes === 0 || (writes < WRITES && takenMs() < WRITING_LIMIT_MS)) {
      writeSync(file, PAGE);
      writes += 1;
    }
    return takenMs() / writes;
  } finally {
    closeSync(file);
    rmSync(path);
  }
}
