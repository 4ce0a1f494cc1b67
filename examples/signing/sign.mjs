// Prints the value of X-Service-Signature for a body: node sign.mjs SECRET_FILE BODY_FILE
import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** `secret` is text. `body` is the bytes, as a Buffer: send the same bytes afterwards, and do not make them again. */
function signatureOf(secret, body) {
  return `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
}

const [secretFile, bodyFile] = process.argv.slice(2);
const secret = readFileSync(secretFile, 'utf8').trim(); // white space at its ends and a byte order mark are not part of it
process.stdout.write(`${signatureOf(secret, readFileSync(bodyFile))}\n`);
