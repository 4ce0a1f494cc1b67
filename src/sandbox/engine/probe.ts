// Probes an input with ffprobe: its format, its duration, and which streams it has.

import { z } from 'zod';
import { parseIfJson } from '../../base/json/json.ts';
import { ConversionError } from './errors.ts';
import { runProgram } from './program.ts';
import { INPUT, READING, whyUnreadable } from './reading.ts';

export type Probe = {
  /** All names of the demuxer that recognized it. */
  readonly demuxers: readonly string[];
  /** Undefined if the file does not contain it, as in a live recording. */
  readonly seconds: number | undefined;
  readonly hasVideo: boolean;
  readonly hasAudio: boolean;
};

/** ffprobe prints six lines per stream, and no honest file has hundreds of streams. */
const MAX_LINES = 4_000;

const SHOWN = 'format=format_name,duration:stream=codec_type:stream_disposition=attached_pic';

const Report = z.object({
  format: z.object({ format_name: z.string(), duration: z.string().optional() }),
  streams: z.array(
    z.object({
      codec_type: z.string().optional(),
      disposition: z.object({ attached_pic: z.number() }).optional(),
    }),
  ),
});

/** Probes the input in `folder`. @throws ConversionError INVALID_INPUT; the signal's reason once it is aborted. */
export async function probe(program: string, folder: string, signal: AbortSignal): Promise<Probe> {
  const args = [...READING, '-of', 'json', '-show_entries', SHOWN, INPUT];
  const lines: string[] = [];
  const { exitCode, complaint } = await runProgram(program, args, {
    folder,
    signal,
    onLine: (line) => {
      if (lines.push(line) > MAX_LINES)
        throw new ConversionError('INVALID_INPUT', 'the input has too many streams');
    },
  });
  const report = exitCode === 0 ? Report.safeParse(parseIfJson(lines.join('\n'))) : undefined;
  if (!report?.success) {
    const message = `the input cannot be read: ${whyUnreadable(complaint)}`;
    throw new ConversionError('INVALID_INPUT', message, { cause: new Error(complaint) });
  }
  const { format, streams } = report.data;
  const seconds = Number(format.duration);
  return {
    demuxers: format.format_name.split(','),
    seconds: seconds > 0 && Number.isFinite(seconds) ? seconds : undefined,
    // The cover of a song is a video stream, too, but not a video.
    hasVideo: streams.some((stream) => stream.codec_type === 'video' && !stream.disposition?.attached_pic),
    hasAudio: streams.some((stream) => stream.codec_type === 'audio'),
  };
}
