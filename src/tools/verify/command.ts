// `tallyhook verify`: why a signature does not match, offline. Shows the right signature, and no secret.

import { buffer } from 'node:stream/consumers';
import { UsageError } from '../../base/errors.ts';
import { digestIn, faultsInForm, SIGNATURE_HEADER } from '../../base/signing/signature-cause.ts';
import type { Env } from '../../config.ts';
import { sign } from '../../signature/index.ts';
import { parse } from '../../terminal/arguments.ts';
import type { Command } from '../../terminal/command.ts';
import { inRepository } from '../../terminal/environment.ts';
import type { Io } from '../../terminal/io.ts';
import { readNamedFile } from '../../terminal/named-file.ts';
import { option, optionHelp } from '../../terminal/options.ts';
import { guessMistakes } from './guesses.ts';
import { localSecret, type NamedSecret, readSecrets } from './secrets.ts';

const OPTIONS = {
  'secret-file': {
    ...option(
      'FILE',
      `the signing secret, or several separated by commas, as in SIGNING_SECRETS_FILE: white space
around each is not part of it. May be given several times. Without it, the secret that
"send" signs with: SIGNING_SECRETS${inRepository(', or that of the relay that "npm start" runs')}`,
    ),
    multiple: true,
  },
  source: option('NAME', 'without --secret-file: the first secret of this source of SOURCES_FILE (default)'),
  'body-file': option('FILE', 'the body, byte for byte as it was sent; - reads standard input'),
  signature: option('VALUE', 'the value of X-Service-Signature'),
} as const;

const help = `Says whether a signature is right for a body, and if not, what is wrong with it. Works offline.

  verify
${optionHelp(OPTIONS, 23)}

Tries the likely mistakes: the form of the header; newlines, white space and byte order marks; JSON with other white space
or indents; a secret that was decoded, or read with its newline; other algorithms. If a body was formatted or sorted in
some other way, verify cannot detect this: sign the bytes that you send.

Exit code 0 if the signature is right, 1 if not.`;

async function run(args: string[], env: Env, io: Io): Promise<number> {
  const { values } = parse(args, OPTIONS);
  const { 'secret-file': files = [], 'body-file': bodyFile, signature, source } = values;
  if (bodyFile === undefined) throw new UsageError('--body-file is missing');
  if (signature === undefined) throw new UsageError('--signature is missing');
  if (files.length > 0 && source !== undefined) {
    throw new UsageError('--source chooses a secret of SOURCES_FILE: leave out --secret-file');
  }
  const { secrets, notes } = files.length > 0 ? readSecrets(files) : localSecret(env, source);
  const body = bodyFile === '-' ? await buffer(io.stdin) : readNamedFile('--body-file', bodyFile);
  const { value, faults } = readHeader(signature);

  for (const note of notes) io.say(note);
  const matching = secrets.find(({ secret }) => sign(body, secret) === value);
  if (matching !== undefined && faults.length === 0) {
    io.say(`${io.paint('green', 'matches')}: signed with the secret in ${matching.name}`);
    io.say(CHANGED_ON_THE_WAY);
    return 0;
  }
  io.say(io.paint('red', 'does not match'));
  for (const fault of [...faults, ...faultsOf(value, secrets, body)]) io.say(`- ${fault}`);
  for (const { name, secret } of secrets) {
    io.say(`expected with the secret in ${name}:\n  X-Service-Signature: ${sign(body, secret)}`);
  }
  return 1;
}

const CHANGED_ON_THE_WAY =
  'If the service still refuses it, the body was changed on the way. With curl use --data-binary, not -d.';

/** A header's name in front of its value. An algorithm is none: `sha256:` is a wrong prefix. */
const NAME = /^(?!sha-?\d)([\w-]+):(?:[ \t]+|(?<=signature[\w-]*:))/i;

/** The whole header line is taken as well, in place of the value. */
function readHeader(text: string): { readonly value: string; readonly faults: readonly string[] } {
  const [line = '', name] = NAME.exec(text) ?? [];
  const isOther = name !== undefined && name.toLowerCase() !== SIGNATURE_HEADER;
  return {
    value: text.slice(line.length),
    faults: isOther ? ['the header has another name: the service reads X-Service-Signature'] : [],
  };
}

/** What is wrong with the form, and what with the digest. */
function faultsOf(value: string, secrets: readonly NamedSecret[], body: Buffer): readonly string[] {
  const faults = faultsInForm(value);
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

export const verifyCommand: Command = { help, run };
