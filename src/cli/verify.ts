// `tallyhook verify`: why a signature does not match, offline. Shows the right signature, and no secret.

import { createHmac } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { UsageError } from '../errors.ts';
import { parseIfJson } from '../json.ts';
import { parseSecrets } from '../secret.ts';
import { causeInForm, digestIn } from '../signature-cause.ts';
import { parse, TEXT } from './arguments.ts';
import type { Command } from './command.ts';
import { readNamedFile } from './named-file.ts';
import { paint, say } from './output.ts';
import { guessMistakes } from './verify-guesses.ts';

const help = `Says whether a signature is right for a body, and if not, what is wrong with it. Works offline.

  verify
    --secret-file FILE      the signing secret, or several separated by commas, as in SIGNING_SECRETS_FILE: white space
                            around each is not part of it. May be given several times
    --body-file FILE        the body, byte for byte as it was sent; - reads standard input
    --signature VALUE       the value of X-Service-Signature

Tries the likely mistakes: the form of the header; newlines, white space and byte order marks; JSON that was written with
other white space; a secret that was decoded, or read with its newline; other algorithms. A body that was formatted or
sorted in some other way cannot be found out: sign the bytes that you send.

Exit code 0 if the signature is right, 1 if not.`;

const OPTIONS = {
  'secret-file': { ...TEXT, multiple: true },
  'body-file': TEXT,
  signature: TEXT,
} as const;

/** `raw`: the content of its file. `name`: for people. */
type NamedSecret = { readonly name: string; readonly secret: string; readonly raw: string };

async function run(args: string[]): Promise<number> {
  const { values } = parse(args, OPTIONS);
  const { 'secret-file': files = [], 'body-file': bodyFile, signature } = values;
  if (files.length === 0) throw new UsageError('--secret-file is missing');
  if (bodyFile === undefined) throw new UsageError('--body-file is missing');
  if (signature === undefined) throw new UsageError('--signature is missing');
  const secrets = files.flatMap(readSecrets);
  const body = bodyFile === '-' ? await buffer(process.stdin) : readNamedFile('--body-file', bodyFile);
  // The whole header line is taken as well.
  const value = signature.replace(/^x-service-signature:[ \t]*/i, '');

  const matching = secrets.find(({ secret }) => signatureOf(secret, body) === value);
  if (matching !== undefined) {
    say(`${paint('green', 'matches')}: signed with the secret in ${matching.name}`);
    return 0;
  }
  say(paint('red', 'does not match'));
  for (const fault of faultsOf(value, secrets, body)) say(`- ${fault}`);
  for (const { name, secret } of secrets) {
    say(`expected with the secret in ${name}:\n  X-Service-Signature: ${signatureOf(secret, body)}`);
  }
  return 1;
}

/** What is wrong with the form, and what with the digest. */
function faultsOf(value: string, secrets: readonly NamedSecret[], body: Buffer): readonly string[] {
  const form = causeInForm(value);
  const faults = form === undefined ? [] : [form];
  const digest = digestIn(value);
  if (digest === undefined) return faults;
  for (const { name, ...secret } of secrets) {
    const mistakes = guessMistakes(digest, { ...secret, body });
    if (mistakes === undefined) continue;
    if (mistakes.length === 0) return [...faults, `apart from that it is right, with the secret in ${name}`];
    const used = secrets.length === 1 ? [] : [`the secret in ${name} was used`];
    return [...faults, ...mistakes, ...used];
  }
  return [...faults, UNEXPLAINED];
}

const UNEXPLAINED = 'no likely mistake explains it: other bytes were signed, or another secret was used';

const signatureOf = (secret: string, body: Buffer) =>
  `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;

/** The secrets of a file, as the service would take them. @throws UsageError */
function readSecrets(file: string): readonly NamedSecret[] {
  const raw = readNamedFile('--secret-file', file).toString();
  if (typeof parseIfJson(raw) === 'object') {
    throw new UsageError(
      '--secret-file takes a file with the secret alone, not a JSON file such as SOURCES_FILE',
    );
  }
  const faults: string[] = [];
  parseSecrets('--secret-file', raw, faults);
  if (faults.length > 0) throw new UsageError(`${faults.join('; ')}: the service takes no such secret`);
  const entries = raw.split(',').map((entry) => entry.trim());
  return entries.map((secret, index) => ({
    name: entries.length === 1 ? file : `${file} (entry ${index + 1})`,
    secret,
    raw,
  }));
}

export const verifyCommand: Command = { help, run };
