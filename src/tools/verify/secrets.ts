// The secrets that `tallyhook verify` tries: those of the files that it is given, or the one that `tallyhook send` signs with.

import { UsageError } from '../../base/errors.ts';
import { parseIfJson } from '../../base/json/json.ts';
import { parseSecrets } from '../../base/signing/secret.ts';
import { DEFAULT_SOURCE } from '../../base/text/source-name.ts';
import type { Env } from '../../config.ts';
import { withLocalRun } from '../../terminal/environment.ts';
import { readNamedFile } from '../../terminal/named-file.ts';
import { signingSecret } from '../send/secret.ts';

/** `raw`: all that the secret was read from. `name`: for people. */
export type NamedSecret = { readonly name: string; readonly secret: string; readonly raw: string };

/** `notes`: what is wrong with a file as a whole, although its secrets are tried. */
export type GivenSecrets = { readonly secrets: readonly NamedSecret[]; readonly notes: readonly string[] };

/** @throws UsageError if a file cannot be read, or has what the service takes as no secret */
export function readSecrets(files: readonly string[]): GivenSecrets {
  const given = files.map(readFile);
  return {
    secrets: given.flatMap(({ secrets }) => secrets),
    notes: given.flatMap(({ notes }) => notes),
  };
}

/** What `send` signs with for a source: the first of its secrets. @throws UsageError if there is none */
export function localSecret(env: Env, source: string | undefined): GivenSecrets {
  try {
    const secret = signingSecret(withLocalRun(env), source);
    const name = `the environment (source "${source ?? DEFAULT_SOURCE}")`;
    return { secrets: [{ name, secret, raw: secret }], notes: [] };
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    throw new UsageError(`--secret-file is missing, and ${error.message}`);
  }
}

function readFile(file: string): GivenSecrets {
  const raw = readNamedFile('--secret-file', file).toString();
  if (typeof parseIfJson(raw) === 'object') {
    throw new UsageError(
      '--secret-file takes a file with the secret alone, not a JSON file such as SOURCES_FILE',
    );
  }
  const lines = faultsOf(raw).length === 0 ? [raw] : raw.trim().split(/,?\s*[\r\n]\s*/);
  const faults = lines.flatMap(faultsOf);
  if (faults.length > 0) throw new UsageError(`${faults.join('; ')}: the service takes no such secret`);
  const entries = lines.flatMap((line) => line.split(',').map((entry) => entry.trim()));
  const secrets = entries.map((secret, index) => ({
    name: entries.length === 1 ? file : `${file} (entry ${index + 1})`,
    secret,
    raw,
  }));
  return { secrets, notes: lines.length === 1 ? [] : [severalLines(file)] };
}

/** Why the service would not take this list. */
function faultsOf(list: string): readonly string[] {
  const faults: string[] = [];
  parseSecrets('--secret-file', list, faults);
  return faults;
}

const severalLines = (file: string) =>
  `${file} has several lines: each is tried, but the service refuses such a file; separate secrets by commas`;
