// The formats that the sandbox reads and writes, and their ffmpeg arguments. The encoders are in Debian's ffmpeg package;
// their settings favour speed over quality.

export type Format = {
  /** The only demuxer that may read the format, by one of its names. */
  readonly demuxer: string;
  readonly muxer: string;
  /** Encoder arguments; undefined if the format has no such stream. */
  readonly video: readonly string[] | undefined;
  readonly audio: readonly string[] | undefined;
  /** The `Content-Type` of the output. */
  readonly mediaType: string;
};

/** Every player supports yuv420p, which needs an even width and height. */
const EVEN_SIDES = ['-vf', 'scale=trunc(iw/2)*2:trunc(ih/2)*2', '-pix_fmt', 'yuv420p'];
const H264 = ['-c:v', 'libx264', '-preset', 'veryfast', '-crf', '23', ...EVEN_SIDES];
const VP9 = ['-c:v', 'libvpx-vp9', '-deadline', 'realtime', '-cpu-used', '8', '-crf', '33', '-b:v', '0'];
const MPEG4 = ['-c:v', 'mpeg4', '-q:v', '5', ...EVEN_SIDES];
/** Few pixels and frames, since a GIF is huge otherwise. The palette is fixed: to find a better one, ffmpeg would keep
 *  every frame in memory. */
const GIF = ['-c:v', 'gif', '-vf', 'fps=10,scale=min(480\\,iw):-2'];

const AAC = ['-c:a', 'aac', '-b:a', '128k'];
const OPUS = ['-c:a', 'libopus', '-b:a', '96k', '-ac', '2'];
const MP3 = ['-c:a', 'libmp3lame', '-q:a', '4'];
const PCM = ['-c:a', 'pcm_s16le'];

/** By `input_format` and `output_format`. */
export const FORMATS = {
  mp4: { demuxer: 'mov', muxer: 'mp4', video: H264, audio: AAC, mediaType: 'video/mp4' },
  webm: {
    demuxer: 'matroska',
    muxer: 'webm',
    video: [...VP9, ...EVEN_SIDES],
    audio: OPUS,
    mediaType: 'video/webm',
  },
  mkv: { demuxer: 'matroska', muxer: 'matroska', video: H264, audio: AAC, mediaType: 'video/x-matroska' },
  mov: { demuxer: 'mov', muxer: 'mov', video: H264, audio: AAC, mediaType: 'video/quicktime' },
  avi: { demuxer: 'avi', muxer: 'avi', video: MPEG4, audio: MP3, mediaType: 'video/x-msvideo' },
  mp3: { demuxer: 'mp3', muxer: 'mp3', video: undefined, audio: MP3, mediaType: 'audio/mpeg' },
  wav: { demuxer: 'wav', muxer: 'wav', video: undefined, audio: PCM, mediaType: 'audio/wav' },
  gif: { demuxer: 'gif', muxer: 'gif', video: GIF, audio: undefined, mediaType: 'image/gif' },
} as const satisfies Readonly<Record<string, Format>>;

export type FormatName = keyof typeof FORMATS;

export const FORMAT_NAMES = Object.keys(FORMATS) as readonly FormatName[];

export function findFormat(name: string): Format | undefined {
  return Object.hasOwn(FORMATS, name) ? FORMATS[name as FormatName] : undefined;
}

/** All that ffmpeg may use. None of them opens further files, as hls, dash, concat, image2 and sdp do. */
export const DEMUXERS: readonly string[] = [...new Set(FORMAT_NAMES.map((name) => FORMATS[name].demuxer))];
