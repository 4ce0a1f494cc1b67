// Who may send to a local run: the source `default`, and named ones from the caller's SOURCES_FILE or from
// `.local/sources.json`. That file is made once, with a source to try. It is the developer's to edit, also while the relay runs.

import { randomBytes } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { secretInFile, signingSecret } from '../src/tools/send/secret.ts';
import { given, type LocalEnv } from './local-env.ts';

type LocalSecrets = Pick<
  LocalEnv,
  'SIGNING_SECRETS' | 'SIGNING_SECRETS_FILE' | 'SIGNING_SECRET' | 'SOURCES_FILE'
>;

const EXAMPLE_SOURCE = 'team-a';
const SECRET_BYTES = 32;

/**
 * `before`: the SIGNING_SECRETS of an earlier run, which are kept. They are empty where a file has the secrets of the source
 * `default`: the relay reads it again when it changes.
 * @throws UsageError if a file cannot be read
 */
export function localSecrets(ownFile: string, before: string | undefined): LocalSecrets {
  const SOURCES_FILE = findOrCreateFile(ownFile);
  const { SIGNING_SECRETS: list, SIGNING_SECRETS_FILE: file } = process.env;
  const SIGNING_SECRETS_FILE = !list && file ? resolve(file) : '';
  const isInFile = SIGNING_SECRETS_FILE !== '' || secretInFile({ SOURCES_FILE }) !== undefined;
  const SIGNING_SECRETS = list || (isInFile ? '' : (before ?? newSecret()));
  const found = { SOURCES_FILE, SIGNING_SECRETS, SIGNING_SECRETS_FILE };
  return { ...found, SIGNING_SECRET: signingSecret(found) };
}

/** @returns an absolute path, since commands that read the file may be started in another folder */
function findOrCreateFile(ownFile: string): string {
  const theirs = given('SOURCES_FILE');
  if (theirs !== undefined) return resolve(theirs);
  if (!existsSync(ownFile)) {
    const sources = { [EXAMPLE_SOURCE]: { secrets: [newSecret()] } };
    writeFileSync(ownFile, `${JSON.stringify(sources, undefined, 2)}\n`, { mode: 0o600 });
  }
  return ownFile;
}

const newSecret = () => randomBytes(SECRET_BYTES).toString('hex');
