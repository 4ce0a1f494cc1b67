// Checks by its first bytes whether a file can be a media file, for the simulated engine.

/** [offset, bytes] with which the supported containers begin. */
const SIGNATURES: readonly (readonly [number, string])[] = [
  [4, 'ftyp'], // mp4, mov
  [4, 'moov'], // old mov
  [4, 'mdat'],
  [4, 'wide'],
  [0, '\x1a\x45\xdf\xa3'], // mkv, webm (EBML)
  [8, 'AVI '], // after RIFF and a length
  [8, 'WAVE'],
  [0, 'ID3'], // mp3 with tags
  [0, 'GIF87a'],
  [0, 'GIF89a'],
];

/** How many bytes `beginsLikeMedia` needs. */
export const SIGNATURE_BYTES = 12;

export function beginsLikeMedia(head: Uint8Array): boolean {
  const text = Buffer.from(head).toString('latin1');
  return SIGNATURES.some(([offset, bytes]) => text.startsWith(bytes, offset)) || beginsWithMp3Frame(head);
}

/** Eleven set bits, an existing version, and layer III. A weaker check would accept UTF-16 text. */
function beginsWithMp3Frame([first = 0, second = 0]: Uint8Array): boolean {
  return first === 0xff && (second & 0xe6) === 0xe2 && (second & 0x18) !== 0x08;
}
