// Tells by its first bytes whether a file may be a clip at all. For the simulated engine, which knows no more.

/** [offset, bytes] of what each of the supported containers begins with. */
const SIGNATURES: readonly (readonly [number, string])[] = [
  [4, 'ftyp'], // mp4, mov
  [4, 'moov'], // mov of old
  [4, 'mdat'],
  [4, 'wide'],
  [0, '\x1a\x45\xdf\xa3'], // mkv, webm (EBML)
  [8, 'AVI '], // after RIFF and its length
  [8, 'WAVE'],
  [0, 'ID3'], // mp3 with tags
  [0, 'GIF87a'],
  [0, 'GIF89a'],
];

/** So many bytes are looked at. */
export const SIGNATURE_BYTES = 12;

export function beginsLikeMedia(head: Uint8Array): boolean {
  const text = Buffer.from(head).toString('latin1');
  return SIGNATURES.some(([offset, bytes]) => text.startsWith(bytes, offset)) || beginsWithMp3Frame(head);
}

/** Eleven set bits, a version that exists, and layer III: what is more would take UTF-16 for music. */
function beginsWithMp3Frame([first = 0, second = 0]: Uint8Array): boolean {
  return first === 0xff && (second & 0xe6) === 0xe2 && (second & 0x18) !== 0x08;
}
