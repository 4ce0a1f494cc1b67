// Arguments with which ffmpeg and ffprobe read an untrusted input. They may open one local file and nothing else: no
// network, no playlist that names other files, no demuxer that is not in the table of formats. Their memory is limited.

import { INPUT_NAME } from './create-engine.ts';
import { DEMUXERS } from './formats.ts';

/** Relative to the folder in which both programs run. With the protocol, so that no part of the name is taken for one. */
export const INPUT = `file:${INPUT_NAME}`;

/** The largest single allocation, since a header can ask for any size. */
const MAX_ALLOC_BYTES = 256 * 1024 * 1024;
/** 4K, including the wider cinema format. ffmpeg keeps dozens of frames: an 8K file of 541 kB took 4.1 GB. */
const MAX_PIXELS = 4_096 * 2_304;
/** For decoding, filters and encoding each. More would starve other jobs and the API, and each thread keeps frames. */
export const THREADS = '2';

/** For both programs, before the input. */
export const READING: readonly string[] = [
  ['-hide_banner'],
  ['-v', 'error'],
  ['-max_alloc', String(MAX_ALLOC_BYTES)],
  ['-protocol_whitelist', 'file'],
  ['-format_whitelist', DEMUXERS.join(',')],
  ['-max_pixels', String(MAX_PIXELS)],
  ['-threads', THREADS],
].flat();

/** ffmpeg's error output → the message for the client. ffmpeg's own text can contain paths and is hard to read. */
const REASONS: readonly (readonly [RegExp, string])[] = [
  [/moov atom not found/, 'its index is missing, as in a file that was cut off'],
  [/not on whitelist/i, 'it is in none of the supported formats'],
  [/partial file|Truncat/i, 'it is cut off'],
  [
    /Picture size \S+ (is invalid|exceeds)|max_pixels|Invalid image size/i,
    'its picture has more pixels than 4096 × 2304',
  ],
  [/Cannot allocate memory|malloc of size/i, 'it takes more memory than a conversion may'],
  [/Decoder \(codec .*\) not found|no decoder/i, 'it uses a codec that is not supported'],
];

/** Completes the sentence "the input cannot be read: …". */
export function whyUnreadable(complaint: string): string {
  const known = REASONS.find(([pattern]) => pattern.test(complaint));
  return known?.[1] ?? 'it is corrupted or no media file';
}
