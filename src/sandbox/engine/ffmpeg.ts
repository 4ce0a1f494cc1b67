// The engine that converts, with the ffmpeg that is installed on the machine: probes the input, rejects what cannot
// succeed, and transcodes it.

import { execFile } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createEngine, type EngineOptions } from './create-engine.ts';
import type { ConversionOrder, Engine } from './engine.ts';
import { ConversionError } from './errors.ts';
import type { Format } from './formats.ts';
import { type Probe, probe } from './probe.ts';
import { OUTPUT_NAME, tooLong, transcode } from './transcode.ts';

export type Programs = { readonly ffmpeg: string; readonly ffprobe: string; readonly version: string };

/** Where Debian and Fedora, local builds, and Homebrew install programs. */
const USUAL_FOLDERS: readonly string[] = ['/usr/bin', '/usr/local/bin', '/opt/homebrew/bin', '/bin'];
const VERSION_TIMEOUT_MS = 10_000;

/** Uncompressed sound makes outputs grow, and so does a still picture; this limits by how much. */
const OUTPUT_PER_INPUT = 4;

const runFile = promisify(execFile);

/** From the first folder with both programs in working order. @returns undefined if there is none. */
export async function findFfmpeg(folders: readonly string[] = USUAL_FOLDERS): Promise<Programs | undefined> {
  for (const folder of folders) {
    const ffmpeg = join(folder, 'ffmpeg');
    const ffprobe = join(folder, 'ffprobe');
    try {
      await Promise.all([ffmpeg, ffprobe].map((program) => access(program, constants.X_OK)));
      const { stdout } = await runFile(ffmpeg, ['-version'], { timeout: VERSION_TIMEOUT_MS, env: {} });
      const version = /^ffmpeg version (\S+)/.exec(stdout)?.[1];
      if (version !== undefined) return { ffmpeg, ffprobe, version };
    } catch {
      // Missing, or not executable: try the next folder.
    }
  }
}

export function createFfmpegEngine(options: EngineOptions & { programs: Programs }): Engine {
  const { programs, limits } = options;
  const maxSeconds = limits.mediaSeconds;
  return createEngine(
    { kind: 'ffmpeg', version: programs.version },
    options,
    async ({ order, from, to, folder, signal }) => {
      const input = await probe(programs.ffprobe, folder, signal);
      checkInput(input, order, { from, to, maxSeconds });
      const mediaSeconds = await transcode({
        program: programs.ffmpeg,
        folder,
        from,
        to,
        input,
        maxSeconds,
        maxOutputBytes: limits.inputBytes * OUTPUT_PER_INPUT,
        onProgress: order.onProgress,
        signal,
      });
      return { output: join(folder, OUTPUT_NAME), mediaSeconds };
    },
  );
}

/** Rejects inputs that ffmpeg would reject late or without a clear message. */
function checkInput(
  input: Probe,
  { inputFormat, outputFormat }: ConversionOrder,
  { from, to, maxSeconds }: { from: Format; to: Format; maxSeconds: number },
): void {
  if (!input.demuxers.includes(from.demuxer))
    throw invalid(`the input is not ${inputFormat}, as the job says, but ${input.demuxers.join(' or ')}`);
  if (input.seconds !== undefined && input.seconds > maxSeconds) throw tooLong(maxSeconds);
  const hasVideo = input.hasVideo && to.video !== undefined;
  const hasAudio = input.hasAudio && to.audio !== undefined;
  if (!hasVideo && !hasAudio) {
    const wanted = to.video === undefined ? 'sound' : to.audio === undefined ? 'picture' : 'picture or sound';
    throw invalid(`the input has no ${wanted} that ${outputFormat} could hold`);
  }
}

function invalid(message: string): ConversionError {
  return new ConversionError('INVALID_INPUT', message);
}
