// For tests of conversions: a folder, a file server on it, an engine, clips, and checks of what is left behind.

import { execFile, spawnSync } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { extname } from 'node:path';
import { promisify } from 'node:util';
import { pino } from 'pino';
import { onTestFinished } from 'vitest';
import { createAddresses } from '../../src/sandbox/addresses/addresses.ts';
import {
  type ConversionOrder,
  DEFAULT_ENGINE_LIMITS,
  type Engine,
  type EngineLimits,
} from '../../src/sandbox/engine/engine.ts';
import { createFfmpegEngine, findFfmpeg, type Programs } from '../../src/sandbox/engine/ffmpeg.ts';
import { createSimulatedEngine } from '../../src/sandbox/engine/simulated.ts';
import { makeSampleClip } from '../../src/sandbox/files/clips.ts';
import { startFileServer } from '../../src/sandbox/files/file-server.ts';
import { createFolder } from './folder.ts';

export const silentLog = pino({ level: 'silent' });

/** Undefined if ffmpeg is not installed. */
export const programs = await findFfmpeg();

/** Added to the name of tests that need ffmpeg. */
export const WITHOUT_FFMPEG = programs === undefined ? ' (skipped: there is no ffmpeg on this machine)' : '';

type Media = AsyncDisposable & {
  readonly engine: Engine;
  /** The path of a served file. */
  readonly path: (name: string) => string;
  readonly url: (name: string) => string;
  /** An order for served files. The formats are the extensions of their names. */
  readonly order: (input: string, output: string, more?: Partial<ConversionOrder>) => ConversionOrder;
  /** Names of files that conversions left in their folder. */
  readonly leftBehind: () => Promise<string[]>;
};

export async function startMedia(
  options: {
    limits?: Partial<EngineLimits>;
    simulated?: { stepMs: number };
    programs?: Partial<Programs>;
  } = {},
): Promise<Media> {
  const served = await createFolder();
  const work = await createFolder();
  const maxBytes = 100_000_000;
  const folder = served.path('.');
  const server = await startFileServer({ host: '127.0.0.1', port: 0, folder, maxBytes, log: silentLog });
  const addresses = createAddresses({ allowLocal: true });
  const limits = { ...DEFAULT_ENGINE_LIMITS, ...options.limits };
  const parts = { limits, addresses, folder: work.path('conversions') };
  const url = (name: string) => `${server.url}/${name}`;
  const engine = options.simulated
    ? createSimulatedEngine({ ...options.simulated, ...parts })
    : createFfmpegEngine({ programs: { ...installed(), ...options.programs }, ...parts });
  return {
    engine: endedWithTest(engine),
    path: served.path,
    url,
    order: (input, output, more) => ({
      inputUrl: url(input),
      outputUrl: url(output),
      inputFormat: extname(input).slice(1),
      outputFormat: extname(output).slice(1),
      signal: new AbortController().signal,
      onProgress: () => {},
      ...more,
    }),
    leftBehind: () => readdir(work.path('conversions')),
    [Symbol.asyncDispose]: async () => {
      await addresses.close();
      await server.stop();
      await served[Symbol.asyncDispose]();
      await work[Symbol.asyncDispose]();
    },
  };
}

/** A test that ran into its limit would leave its ffmpeg to the next one, which looks for what is left behind. */
function endedWithTest(engine: Engine): Engine {
  const over = new AbortController();
  const running = new Set<Promise<unknown>>();
  onTestFinished(async () => {
    over.abort(new Error('the test is over'));
    await Promise.allSettled(running);
  });
  return {
    ...engine,
    convert: (order) => {
      const conversion = engine.convert({ ...order, signal: AbortSignal.any([order.signal, over.signal]) });
      running.add(conversion);
      return conversion;
    },
  };
}

/** The error of a conversion, and the files and programs that it left behind. */
export async function failureOf(media: Media, order: ConversionOrder) {
  const failed = media.engine.convert(order).then(
    () => ({ name: 'none', code: undefined, message: 'it succeeded' }),
    (error: Error & { code?: unknown }) => ({ name: error.name, code: error.code, message: error.message }),
  );
  const { name, code, message } = await failed;
  return { name, code, message, left: [...(await media.leftBehind()), ...runningPrograms()] };
}

/** @throws Error if a test runs without ffmpeg that should be skipped. */
export function installed(): Programs {
  if (programs === undefined) throw new Error('there is no ffmpeg on this machine');
  return programs;
}

type MediaFacts = { readonly format: string; readonly codecs: string[]; readonly seconds: number };

/** ffprobe's facts about a file, without any of our own code. */
export async function factsOf(file: string): Promise<MediaFacts> {
  const { stdout } = await promisify(execFile)(installed().ffprobe, [
    '-v',
    'error',
    '-of',
    'json',
    '-show_entries',
    'format=format_name,duration:stream=codec_name',
    file,
  ]);
  const { format, streams } = JSON.parse(stdout) as {
    format: { format_name: string; duration?: string };
    streams: { codec_name: string }[];
  };
  return {
    format: format.format_name,
    codecs: streams.map(({ codec_name }) => codec_name),
    seconds: Number(format.duration),
  };
}

/** Serves a clip of this name, with picture and sound. */
export function sample(media: Media, name: string, seconds = 2): Promise<void> {
  return makeSampleClip({ programs: installed(), file: media.path(name), seconds });
}

/** As `sample`, for a clip that plays long: a short one over and over, since to make each second anew takes too long. */
export async function longSample(media: Media, name: string, seconds: number): Promise<void> {
  const once = `once-${name}`;
  await sample(media, once);
  const repeated = ['-stream_loop', '-1', '-i', media.path(once), '-c', 'copy', '-t', String(seconds)];
  await runFfmpeg([...repeated, media.path(name)]);
}

/** Without any of our own code. @throws Error with ffmpeg's error output. */
export async function runFfmpeg(args: readonly string[]): Promise<void> {
  await promisify(execFile)(installed().ffmpeg, ['-v', 'error', '-nostdin', ...args]);
}

/** As a browser records it: the file does not contain its duration. */
export function makeLiveClip(file: string, seconds: number): Promise<void> {
  const picture = `testsrc2=size=160x90:rate=25:duration=${seconds}`;
  return runFfmpeg(['-f', 'lavfi', '-i', picture, '-c:v', 'libvpx', '-live', '1', '-f', 'webm', file]);
}

/** A clip of one frame, `size` like 3840x2160. */
export function makeStill(file: string, size: string): Promise<void> {
  const picture = ['-f', 'lavfi', '-i', `testsrc=size=${size}:rate=1`, '-frames:v', '1'];
  return runFfmpeg([...picture, '-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', file]);
}

/** Running programs that this test process has started. */
export function runningPrograms(): string[] {
  const { stdout } = spawnSync('ps', ['-A', '-o', 'ppid=,comm='], { encoding: 'utf8' });
  return stdout
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .flatMap(([parent, name = '']) => (Number(parent) === process.pid ? [name] : []))
    .filter((name) => /^ff(mpeg|probe)/.test(name));
}
