// The secret that `tallyhook send` signs with: the first one that the relay would accept for the source.

import type { Env } from '../config.ts';
import { UsageError } from '../errors.ts';
import { parseIfJson } from '../json.ts';
import { readNamedFile } from './named-file.ts';

/** As far as it is what it should be. */
type Sources = { readonly [source: string]: { readonly secrets?: readonly unknown[] } | null } | null;

/** @throws UsageError if there is none. */
export function signingSecret(env: Env, source = 'default'): string {
  const isFromList = env['SIGNING_SECRETS'] || env['SIGNING_SECRETS_FILE'] || !env['SOURCES_FILE'];
  return source === 'default' && isFromList ? defaultSecret(env) : secretOf(source, env);
}

function defaultSecret(env: Env): string {
  const file = env['SIGNING_SECRETS_FILE'];
  const list =
    env['SIGNING_SECRETS'] ?? (file === undefined ? '' : String(readNamedFile('SIGNING_SECRETS_FILE', file)));
  const secret = list.split(',')[0]?.trim();
  if (secret) return secret;
  throw new UsageError('no secret to sign with: set SIGNING_SECRETS, or start a relay with "npm start"');
}

function secretOf(source: string, env: Env): string {
  const file = env['SOURCES_FILE'];
  if (!file) throw new UsageError(`SOURCES_FILE must be set to sign as the source "${source}"`);
  const sources = parseIfJson(String(readNamedFile('SOURCES_FILE', file)));
  if (sources === undefined) throw new UsageError('SOURCES_FILE is not JSON');
  const secret = (sources as Sources)?.[source]?.secrets?.[0];
  if (typeof secret !== 'string') throw new UsageError(`SOURCES_FILE has no source "${source}"`);
  return secret;
}
