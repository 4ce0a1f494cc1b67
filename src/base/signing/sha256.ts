// SHA-256 as bytes, in the way that costs least. Asked for a Buffer, node:crypto makes memory of its own for each digest, outside
// of V8's heap: that takes longer than the digest of a usual body. A text of one byte a character, and a copy in Buffer's pool,
// take half of it.

import { createHmac, hash, type KeyObject } from 'node:crypto';

/** SHA-256 of the bytes, or of the text in UTF-8. */
export const sha256 = (content: Buffer | string): Buffer => fromBinary(hash('sha256', content, 'binary'));

/** HMAC-SHA256 of the bytes. */
export const hmacSha256 = (key: KeyObject, content: Buffer): Buffer =>
  fromBinary(createHmac('sha256', key).update(content).digest('binary'));

const fromBinary = (digest: string): Buffer => Buffer.from(digest, 'binary');
