// Who may send: the unnamed source `default` from SIGNING_SECRETS and the named ones from SOURCES_FILE.
// The file is read again when it changes and on SIGHUP; a broken one keeps the old set and is logged.

import { unwatchFile, watchFile } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { Logger } from 'pino';
import { z } from 'zod';
import { ConfigError, describeError } from '../errors.ts';
import { parseJson } from '../json.ts';
import { createSecret, SECRETS_PER_SOURCE, type Secret } from '../secret.ts';
import { createKeyRing, type KeyRing } from './signature.ts';

export const DEFAULT_SOURCE = 'default';

/** Requests for any name that is no source are recorded under this one. */
export const UNKNOWN_SOURCE = 'unknown';

/** No dots, since the name is the last word of the routing key. Short, since AMQP limits keys to 255 bytes. */
export const SOURCE_NAME = /^[a-z0-9][a-z0-9_-]{0,62}$/;

/** How often the file's stat is compared. That costs nothing, and also sees swapped symbolic links. */
const WATCH_INTERVAL_MS = 1_000;

export type Sources = {
  /** The present set. Call it each time, since a reload replaces the set. */
  readonly current: () => KeyRing;
  /** Reads SOURCES_FILE again. Keeps the old set and logs when it is broken. Never rejects. */
  readonly reload: () => Promise<void>;
  readonly close: () => void;
};

const sourcesFile = z.record(
  z.string().regex(SOURCE_NAME),
  z.strictObject({ secrets: z.array(z.string()).min(1).max(SECRETS_PER_SOURCE) }),
);

/**
 * @throws ConfigError when the file is broken: at start there is no older set to keep.
 */
export async function createSources(options: {
  defaultSecrets: readonly Secret[];
  file: string | undefined;
  log: Logger;
}): Promise<Sources> {
  const { defaultSecrets, file, log } = options;
  let ring = await load(defaultSecrets, file);

  async function loadAgain(): Promise<void> {
    try {
      ring = await load(defaultSecrets, file);
      log.info({ sources: ring.names }, 'sources loaded');
    } catch (error) {
      log.error({ err: describeError(error) }, 'SOURCES_FILE is broken, the sources stay as they were');
    }
  }
  // One after the other: of two at once, the one that read the older file could finish last.
  let loading = Promise.resolve();
  const reload = () => {
    loading = loading.then(loadAgain);
    return loading;
  };
  const onChange = () => void reload();
  if (file !== undefined) watchFile(file, { interval: WATCH_INTERVAL_MS, persistent: false }, onChange);

  return {
    current: () => ring,
    reload,
    close: () => {
      if (file !== undefined) unwatchFile(file, onChange);
    },
  };
}

async function load(defaultSecrets: readonly Secret[], file: string | undefined): Promise<KeyRing> {
  const sources = new Map<string, readonly Secret[]>();
  if (defaultSecrets.length > 0) sources.set(DEFAULT_SOURCE, defaultSecrets);
  if (file !== undefined) {
    for (const [name, secrets] of await readSourcesFile(file)) sources.set(name, secrets);
  }
  return createKeyRing(sources);
}

async function readSourcesFile(file: string): Promise<Map<string, readonly Secret[]>> {
  const parsed = sourcesFile.safeParse(await readJson(file));
  if (!parsed.success) throw new ConfigError(parsed.error.issues.map(describeIssue));
  const faults: string[] = [];
  const sources = new Map<string, readonly Secret[]>();
  for (const [name, { secrets }] of Object.entries(parsed.data)) {
    if (name === DEFAULT_SOURCE) faults.push('SOURCES_FILE names "default", which SIGNING_SECRETS sets');
    if (name === UNKNOWN_SOURCE) faults.push('SOURCES_FILE names "unknown", which is kept for strangers');
    sources.set(
      name,
      secrets.flatMap((text, index) => toSecret(text, `${name}.secrets[${index}]`, faults)),
    );
  }
  if (faults.length > 0) throw new ConfigError(faults);
  return sources;
}

/** Quotes only valid names: any other key may be a secret in the wrong place. */
function describeIssue({ code, path, message }: z.core.$ZodIssue): string {
  if (code === 'invalid_key') return 'SOURCES_FILE has a source name that is not 1 to 63 of a-z, 0-9, _ or -';
  const fault = code === 'unrecognized_keys' ? 'has a field that is not "secrets"' : message;
  return `SOURCES_FILE ${path.join('.')}: ${fault}`;
}

function toSecret(text: string, place: string, faults: string[]): Secret[] {
  const secret = createSecret(text);
  if (typeof secret !== 'string') return [secret];
  faults.push(`SOURCES_FILE ${place} ${secret}`);
  return [];
}

async function readJson(file: string): Promise<unknown> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    throw new ConfigError([`SOURCES_FILE cannot be read (${(error as NodeJS.ErrnoException).code})`]);
  }
  try {
    return parseJson(text);
  } catch {
    // The parser's own message quotes the text around the fault, which may be a secret.
    throw new ConfigError(['SOURCES_FILE is not JSON']);
  }
}
