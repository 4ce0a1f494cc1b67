// Secrets to sign with: the first one that the relay accepts for a source. Names the sources that there are where one is
// unknown, and no secret.

import { UsageError } from '../../base/errors.ts';
import { parseIfJson } from '../../base/json/json.ts';
import { DEFAULT_SOURCE, SOURCE_NAME } from '../../base/text/source-name.ts';
import type { Env } from '../../config.ts';
import { inRepository } from '../../terminal/environment.ts';
import { readNamedFile } from '../../terminal/named-file.ts';

/** As far as it is what it should be. */
type Sources = Readonly<Record<string, { readonly secrets?: readonly unknown[] } | null>>;

/** @throws UsageError if there is none; it names the sources that there are, and where to add one. */
export function signingSecret(env: Env, source: string = DEFAULT_SOURCE): string {
  const secret = (source === DEFAULT_SOURCE ? firstOfList(env) : undefined) ?? secretInFile(env, source);
  if (secret !== undefined) return secret;
  if (source === DEFAULT_SOURCE) {
    const orStart = inRepository(', or start a relay with "npm start"');
    throw new UsageError(
      `there is no secret to sign with: set SIGNING_SECRETS or SIGNING_SECRETS_FILE${orStart}`,
    );
  }
  throw new UsageError(unknownSource(source, env));
}

/** As `signingSecret`; undefined if there is none, or its file cannot be read. */
export function signingSecretIfKnown(env: Env, source?: string): string | undefined {
  try {
    return signingSecret(env, source);
  } catch {
    return undefined;
  }
}

/** The first secret of a source in SOURCES_FILE. @throws UsageError if the file cannot be read */
export function secretInFile(env: Env, source: string = DEFAULT_SOURCE): string | undefined {
  const sources = readSources(env);
  const found = Object.hasOwn(sources, source) ? sources[source] : undefined;
  const entry = found?.secrets?.[0] as string | { readonly secret?: unknown } | null | undefined;
  const secret = typeof entry === 'object' ? entry?.secret : entry;
  return typeof secret === 'string' && secret !== '' ? secret : undefined;
}

/**
 * The sources in SOURCES_FILE. Only names that a source may have: any other key may be a secret in the wrong place.
 * @throws UsageError if the file cannot be read
 */
export function namesInFile(env: Env): readonly string[] {
  return Object.keys(readSources(env)).filter((name) => SOURCE_NAME.test(name));
}

function firstOfList(env: Env): string | undefined {
  const file = env['SIGNING_SECRETS_FILE'];
  const list =
    env['SIGNING_SECRETS'] || (file ? String(readNamedFile('SIGNING_SECRETS_FILE', file)) : undefined);
  return list?.split(',')[0]?.trim() || undefined;
}

/** Empty without SOURCES_FILE. */
function readSources(env: Env): Sources {
  const file = env['SOURCES_FILE'];
  if (!file) return {};
  const found = parseIfJson(String(readNamedFile('SOURCES_FILE', file)));
  if (found === undefined) throw new UsageError(`SOURCES_FILE (${file}) is not JSON`);
  return typeof found === 'object' && found !== null ? (found as Sources) : {};
}

function unknownSource(source: string, env: Env): string {
  if (!SOURCE_NAME.test(source))
    return `"${source}" cannot be a source: a name has 1 to 63 of a-z, 0-9, _ and -, and begins with a letter or digit`;
  const file = env['SOURCES_FILE'];
  if (!file) return `there is no source "${source}": SOURCES_FILE is not set, which names all but "default"`;
  const names = [...(firstOfList(env) === undefined ? [] : [DEFAULT_SOURCE]), ...namesInFile(env)];
  const entry = `"${source}": { "secrets": ["at least 16 characters"] }`;
  return `there is no source "${source}". There are: ${names.join(', ') || 'none'}.
Add it to ${file}, which a running relay reads again: ${entry}`;
}
