// The clips that the sandbox's file server offers, made when they are missing.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import {
  CORRUPT_CLIP as CORRUPT,
  isStandInClip,
  makeCorruptClip,
  makeSampleClip,
  makeStandInClip,
  type Programs,
  SAMPLE_CLIP as SAMPLE,
} from '../index.ts';

export const CLIP = SAMPLE.file;
export const CORRUPT_CLIP = CORRUPT.file;

/** Long enough for several progress notifications. */
const CLIP_SECONDS = 20;

/** Without ffmpeg it makes a stand-in, which only the simulated engine accepts. */
export async function makeClips({
  folder,
  programs,
}: {
  folder: string;
  programs: Programs | undefined;
}): Promise<void> {
  const clip = join(folder, CLIP);
  const corrupt = join(folder, CORRUPT_CLIP);
  // ffmpeg cannot read the stand-in that was made before it was installed.
  const isOutdated = programs !== undefined && (await isStandInClip(clip));
  if (isOutdated || !existsSync(clip)) {
    if (programs === undefined) await makeStandInClip({ file: clip });
    else await makeSampleClip({ programs, file: clip, seconds: CLIP_SECONDS });
  }
  if (isOutdated || !existsSync(corrupt)) await makeCorruptClip({ clip, file: corrupt });
}
