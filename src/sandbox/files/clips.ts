// Clips to try the sandbox with, made on the spot: one that ffmpeg draws and sounds itself, a corrupted copy of one,
// and one for machines without ffmpeg.

import { randomUUID } from 'node:crypto';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';
import type { Programs } from '../engine/ffmpeg.ts';
import { findFormat } from '../engine/formats.ts';
import { runProgram } from '../engine/program.ts';

const MAKE_TIMEOUT_MS = 60_000;
const SIZE = '320x180';
const FRAMES_PER_SECOND = 25;

/** A container begins with what it is: without that nobody can read the rest. */
const CORRUPTED_BYTES = 4_096;
const STAND_IN_BYTES = 64 * 1024;
/** The head of an MP4, and nothing to play. */
const STAND_IN_HEAD = Buffer.from([0, 0, 0, 16, ...Buffer.from('ftypisom'), 0, 0, 2, 0]);
const STAND_IN = Buffer.concat([STAND_IN_HEAD, Buffer.alloc(STAND_IN_BYTES - STAND_IN_HEAD.length)]);

/**
 * A test picture with a running clock and a tone, in the format that the file's ending names: `clip.mp4`. Replaces a
 * file of that name, and only when it is whole.
 * @throws Error with what ffmpeg complained of.
 */
export async function makeSampleClip({
  programs,
  file,
  seconds,
}: {
  programs: Programs;
  file: string;
  seconds: number;
}): Promise<void> {
  const format = findFormat(extname(file).slice(1));
  if (format === undefined) throw new Error(`no clip can be made in the format of ${file}`);
  // A name that the file server does not give away.
  const temporary = join(dirname(file), `.${randomUUID()}.part`);
  const picture = `testsrc2=size=${SIZE}:rate=${FRAMES_PER_SECOND}:duration=${seconds}`;
  const tone = `sine=frequency=440:duration=${seconds}`;
  const args = [
    ['-hide_banner', '-v', 'error', '-nostdin', '-y'],
    format.video === undefined ? [] : ['-f', 'lavfi', '-i', picture],
    format.audio === undefined ? [] : ['-f', 'lavfi', '-i', tone],
    format.video ?? [],
    format.audio ?? [],
    ['-f', format.muxer, `file:${basename(temporary)}`],
  ].flat();
  try {
    const { exitCode, complaint } = await runProgram(programs.ffmpeg, args, {
      folder: dirname(file),
      signal: AbortSignal.timeout(MAKE_TIMEOUT_MS),
      onLine: () => {},
    });
    if (exitCode !== 0) throw new Error(`ffmpeg could not make the clip: ${complaint.trim()}`);
    await rename(temporary, file);
  } finally {
    await rm(temporary, { force: true });
  }
}

/** A copy of `clip` that has its length and most of its bytes, and that no program can read. */
export async function makeCorruptClip({ clip, file }: { clip: string; file: string }): Promise<void> {
  const bytes = await readFile(clip);
  await writeFile(file, bytes.fill(0, 0, CORRUPTED_BYTES));
}

/** For the simulated engine, which looks at no more than the beginning. */
export async function makeStandInClip({ file }: { file: string }): Promise<void> {
  await writeFile(file, STAND_IN);
}

/** Also false if there is no such file. */
export async function isStandInClip(file: string): Promise<boolean> {
  const bytes = await readFile(file).catch(() => undefined);
  return bytes?.equals(STAND_IN) ?? false;
}
