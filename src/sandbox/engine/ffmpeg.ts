// The engine that really converts, with the machine's own ffmpeg. An input passes through here in four steps (fetched,
// looked into, converted, put), each within its limits and all in a folder that goes in the end.

import { execFile } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Addresses } from '../addresses/addresses.ts';
import { inWords, withDeadline } from '../addresses/deadline.ts';
import type { Conversion, ConversionOrder, Engine, EngineLimits } from './engine.ts';
import { ConversionError } from './errors.ts';
import type { Format } from './formats.ts';
import { type Probe, probe } from './probe.ts';
import { OUTPUT_NAME, tooLong, transcode } from './transcode.ts';
import { createTransfers, formatsOf } from './transfers.ts';
import { withWorkFolder } from './work-folder.ts';

export type Programs = { readonly ffmpeg: string; readonly ffprobe: string; readonly version: string };

/** Where packages put programs: Debian's and Fedora's, what was built by hand, and Homebrew's. */
const USUAL_FOLDERS: readonly string[] = ['/usr/bin', '/usr/local/bin', '/opt/homebrew/bin', '/bin'];
const VERSION_TIMEOUT_MS = 10_000;

/** Sound without compression grows, as does a clip that was small since it was still; but not without end. */
const OUTPUT_PER_INPUT = 4;

const runFile = promisify(execFile);

/** The first folder that has both programs, in working order. @returns undefined if there is none. */
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
      // Not here, or not for us to run: perhaps in the next one.
    }
  }
}

/** `folder`: where each conversion makes its own. It should be ours alone. */
export function createFfmpegEngine(options: {
  programs: Programs;
  limits: EngineLimits;
  addresses: Addresses;
  folder: string;
}): Engine {
  const { programs, limits, folder: parent } = options;
  const transfers = createTransfers(options);
  const late = () =>
    new ConversionError('TIMED_OUT', `the conversion took longer than ${inWords(limits.runMs)}`);

  async function run(order: ConversionOrder, folder: string, signal: AbortSignal): Promise<number> {
    const { from, to } = formatsOf(order);
    const input = await probe(programs.ffprobe, folder, signal);
    refuseUnfit(input, order, { from, to, maxSeconds: limits.mediaSeconds });
    return transcode({
      program: programs.ffmpeg,
      folder,
      from,
      to,
      input,
      maxSeconds: limits.mediaSeconds,
      maxOutputBytes: limits.inputBytes * OUTPUT_PER_INPUT,
      onProgress: order.onProgress,
      signal,
    });
  }

  async function convert(order: ConversionOrder): Promise<Conversion> {
    const { to } = formatsOf(order);
    return withWorkFolder(parent, async (folder) => {
      await transfers.fetchInput(order, folder);
      const mediaSeconds = await withDeadline(
        { signal: order.signal, timeoutMs: limits.runMs, late },
        (signal) => run(order, folder, signal),
      );
      const outputBytes = await transfers.putOutput(order, join(folder, OUTPUT_NAME), to.mediaType);
      return { outputBytes, mediaSeconds };
    });
  }

  return { kind: 'ffmpeg', version: programs.version, convert };
}

/** What ffmpeg would find out late, or not tell clearly. */
function refuseUnfit(
  input: Probe,
  { inputFormat, outputFormat }: ConversionOrder,
  { from, to, maxSeconds }: { from: Format; to: Format; maxSeconds: number },
): void {
  if (!input.demuxers.includes(from.demuxer))
    throw unfit(`the input is not ${inputFormat}, as the job says, but ${input.demuxers.join(' or ')}`);
  if (input.seconds !== undefined && input.seconds > maxSeconds) throw tooLong(maxSeconds);
  const hasVideo = input.hasVideo && to.video !== undefined;
  const hasAudio = input.hasAudio && to.audio !== undefined;
  if (!hasVideo && !hasAudio) {
    const wanted = to.video === undefined ? 'sound' : to.audio === undefined ? 'picture' : 'picture or sound';
    throw unfit(`the input has no ${wanted} that ${outputFormat} could hold`);
  }
}

function unfit(why: string): ConversionError {
  return new ConversionError('INVALID_INPUT', why);
}
