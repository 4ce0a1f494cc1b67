// One run of ffmpeg: converts the input in a folder into the output and reports progress.

import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { ConversionError } from './errors.ts';
import type { Format } from './formats.ts';
import type { Probe } from './probe.ts';
import { createProgressReader } from './progress.ts';
import { runProgram } from './program.ts';
import { INPUT, READING, THREADS, whyUnreadable } from './reading.ts';

export type TranscodeOptions = {
  readonly program: string;
  readonly folder: string;
  readonly from: Format;
  readonly to: Format;
  readonly input: Probe;
  readonly maxSeconds: number;
  readonly maxOutputBytes: number;
  readonly onProgress: (percentage: number, remainingMs: number | undefined) => void;
  readonly signal: AbortSignal;
};

export const OUTPUT_NAME = 'output';

/** Often enough for clips that take one second. */
const PROGRESS_SECONDS = '0.1';
/** Sound and picture end at different times, and the last frame counts in full. */
const SLACK_SECONDS = 1;
/** Of all packets. With ffmpeg's default of 2/3, a mostly broken clip would count as converted. */
const MAX_ERROR_RATE = '0.1';

/** Of the input's stated duration. A shorter output can be right, if the sound is shorter, but not with error messages. */
const LEAST_PART = 0.5;
/** No input can cause these errors. */
const OUR_FAULT = /Unknown encoder|No space left on device|Disk quota exceeded|Permission denied/;

/** @returns the output's duration in seconds. @throws ConversionError; the signal's reason once it is aborted. */
export async function transcode(options: TranscodeOptions): Promise<number> {
  const { program, folder, input, maxSeconds, maxOutputBytes, signal } = options;
  const progress = createProgressReader({
    totalSeconds: input.seconds,
    onProgress: options.onProgress,
    now: () => performance.now(),
  });
  const { exitCode, complaint } = await runProgram(program, argumentsFor(options), {
    folder,
    signal,
    onLine: (line) => {
      progress.read(line);
      // The input's stated duration was missing or wrong.
      if (progress.seconds() > maxSeconds + SLACK_SECONDS) throw tooLong(maxSeconds);
    },
  });
  const outputBytes = exitCode === 0 ? (await stat(join(folder, OUTPUT_NAME))).size : 0;
  if (outputBytes === 0) throw failure(complaint);
  // At its limit for the output's size, ffmpeg stops without an error.
  if (outputBytes >= maxOutputBytes)
    throw new ConversionError('OUTPUT_UNWRITABLE', `the output would be larger than ${maxOutputBytes} bytes`);
  // ffmpeg converts what it can of a damaged or truncated input and reports success.
  const isDamaged = complaint !== '' && progress.seconds() < (input.seconds ?? 0) * LEAST_PART;
  if (isDamaged) throw damaged(progress.seconds(), complaint);
  return progress.seconds();
}

function failure(complaint: string): ConversionError {
  const cause = new Error(complaint);
  if (OUR_FAULT.test(complaint))
    return new ConversionError('INTERNAL', 'the converter cannot do this at the moment', { cause });
  const message = `the input cannot be converted: ${whyUnreadable(complaint)}`;
  return new ConversionError('INVALID_INPUT', message, { cause });
}

function damaged(seconds: number, complaint: string): ConversionError {
  const message = `the input is damaged: only its first ${seconds.toFixed(1)} seconds can be read`;
  return new ConversionError('INVALID_INPUT', message, { cause: new Error(complaint) });
}

export function tooLong(maxSeconds: number): ConversionError {
  return new ConversionError('INPUT_TOO_LONG', `the input plays longer than ${maxSeconds} seconds`);
}

function argumentsFor({ from, to, input, maxSeconds, maxOutputBytes }: TranscodeOptions): string[] {
  const video = input.hasVideo && to.video !== undefined ? ['-map', '0:V:0', ...to.video] : [];
  const audio = input.hasAudio && to.audio !== undefined ? ['-map', '0:a:0', ...to.audio] : [];
  return [
    READING,
    ['-nostdin', '-nostats', '-progress', 'pipe:1', '-stats_period', PROGRESS_SECONDS],
    ['-abort_on', 'empty_output', '-max_error_rate', MAX_ERROR_RATE],
    ['-filter_threads', THREADS, '-f', from.demuxer, '-i', INPUT],
    video,
    audio,
    ['-map_metadata', '-1', '-sn', '-dn', '-threads', THREADS],
    ['-t', String(maxSeconds + 2 * SLACK_SECONDS), '-fs', String(maxOutputBytes)],
    ['-f', to.muxer, `file:${OUTPUT_NAME}`],
  ].flat();
}
