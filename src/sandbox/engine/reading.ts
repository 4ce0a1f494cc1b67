// How ffmpeg and ffprobe are let near an input that anybody may have made. They may open one local file and nothing
// else: no network, no playlist that names other files, no demuxer beyond those of the formats table. Their memory is
// bounded.

import { DEMUXERS } from './formats.ts';

/** Seen from the work folder, in which both programs run. With its protocol, so that no name can be taken for one. */
export const INPUT = 'file:input';

/** A single piece of memory that a header may ask for. */
const MAX_ALLOC_BYTES = 256 * 1024 * 1024;
/** 4K, also the wider one of cinemas. ffmpeg keeps some dozens of pictures: of 8K a file of 541 kB took 4.1 GB. */
const MAX_PIXELS = 4_096 * 2_304;
/** For reading, writing and filters, each: other jobs and the interface want to run, too, and each keeps pictures. */
export const THREADS = '2';

/** Arguments that stand before the input, for both programs. */
export const READING: readonly string[] = [
  ['-hide_banner'],
  ['-v', 'error'],
  ['-max_alloc', String(MAX_ALLOC_BYTES)],
  ['-protocol_whitelist', 'file'],
  ['-format_whitelist', DEMUXERS.join(',')],
  ['-max_pixels', String(MAX_PIXELS)],
  ['-threads', THREADS],
].flat();

/** What ffmpeg complains of → what to tell. Its own words may name paths, and are for those who know it. */
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

/** The end of the sentence "the input cannot be read: …". */
export function whyUnreadable(complaint: string): string {
  const known = REASONS.find(([pattern]) => pattern.test(complaint));
  return known?.[1] ?? 'it is corrupted or no media file';
}
