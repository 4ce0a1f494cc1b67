// Who may send: the source `default` from SIGNING_SECRETS or its file, and the named ones, which may include it, from
// SOURCES_FILE. Both files are read again when they change and on SIGHUP; a broken one keeps its old set and is logged.

import { readFile, stat } from 'node:fs/promises';
import type { Logger } from 'pino';
import { z } from 'zod';
import { ConfigError, describeError } from '../base/errors.ts';
import { parseJson } from '../base/json/json.ts';
import { inspectStructure } from '../ledger/index.ts';
import { createSecret, parseSecrets, SECRETS_PER_SOURCE, type Secret } from '../base/signing/secret.ts';
import { DEFAULT_SOURCE, SOURCE_NAME, UNKNOWN_SOURCE } from '../base/text/source-name.ts';
import { createKeyRing, type KeyRing } from './signature.ts';

/** How often a file's stat is compared. That costs nothing, and also sees swapped symbolic links. */
const WATCH_INTERVAL_MS = 1_000;

export type Sources = {
  /** The present set. Call it each time, since a reload replaces the set. */
  readonly current: () => KeyRing;
  /** Reads the files again. Of a broken one it keeps the old set, and logs it. Never rejects. */
  readonly reload: () => Promise<void>;
  readonly close: () => void;
};

const secretList = z
  .array(z.string('is not a text'), {
    error: ({ input }) => (input === undefined ? 'is missing' : 'is not a list'),
  })
  .min(1, 'needs at least one secret')
  .max(SECRETS_PER_SOURCE, `has more than ${SECRETS_PER_SOURCE} secrets`);

const sourcesFile = z.record(
  z.string().regex(SOURCE_NAME),
  z.strictObject(
    { secrets: secretList },
    {
      error: ({ code }) =>
        code === 'unrecognized_keys' ? 'has a field that is not "secrets"' : 'is not { "secrets": [ … ] }',
    },
  ),
  { error: () => 'is not an object of sources' },
);

type SecretsBySource = ReadonlyMap<string, readonly Secret[]>;

/** A file of secrets. `read` throws a ConfigError. */
type SecretsFile = {
  readonly variable: 'SIGNING_SECRETS_FILE' | 'SOURCES_FILE';
  readonly path: string;
  readonly read: () => Promise<SecretsBySource>;
};

/**
 * @param options.defaultSecretsFile is read in place of `defaultSecrets`
 * @throws ConfigError with the faults of both files: at start there is no older set to keep.
 */
export async function createSources(options: {
  defaultSecrets: readonly Secret[];
  defaultSecretsFile?: string | undefined;
  file: string | undefined;
  log: Logger;
}): Promise<Sources> {
  const { defaultSecrets, log } = options;
  const files = filesOf(options);
  // The last valid content of each file, so that a broken one does not hold back the changes of the other.
  const valid = new Map<SecretsFile['variable'], SecretsBySource>();
  const versions = new Map<string, string>(); // of each file when it was last read
  const fixed: SecretsBySource =
    defaultSecrets.length > 0 ? new Map([[DEFAULT_SOURCE, defaultSecrets]]) : new Map();
  const toRing = () => createKeyRing(new Map([fixed, ...valid.values()].flatMap((part) => [...part])));

  /** @returns the errors of those files that are broken */
  async function readAll(
    asked: readonly SecretsFile[],
  ): Promise<ReadonlyMap<SecretsFile['variable'], unknown>> {
    const errors = new Map<SecretsFile['variable'], unknown>();
    for (const { variable, path, read } of asked) {
      versions.set(path, await versionOf(path)); // before it is read, so that a change meanwhile is seen
      await read().then(
        (sources) => valid.set(variable, sources),
        (error: unknown) => errors.set(variable, error),
      );
    }
    return errors;
  }

  const errors = [...(await readAll(files)).values()];
  if (errors.length > 0) throw allFaults(errors);
  let ring = toRing();
  warnOfShared(ring, log);

  async function loadAgain(asked: readonly SecretsFile[]): Promise<void> {
    const broken = await readAll(asked);
    for (const [variable, error] of broken) {
      log.error(fieldsOf(error), `${variable} is broken, the previous sources stay valid`);
    }
    const taken = asked.map(({ variable }) => variable).filter((variable) => !broken.has(variable));
    if (taken.length === 0) return;
    ring = toRing();
    log.info({ files: taken, sources: ring.names }, 'sources loaded');
    warnOfShared(ring, log);
  }
  // One after the other: of two at once, the one that read the older file could finish last.
  let loading = Promise.resolve();
  const inTurn = (load: () => Promise<void>) => {
    loading = loading.then(load);
    return loading;
  };

  /** Only the files that changed: the log would say of the other one, too, that it was loaded. */
  async function loadChanged(): Promise<void> {
    const found = await Promise.all(files.map(({ path }) => versionOf(path)));
    await loadAgain(files.filter(({ path }, index) => found[index] !== versions.get(path)));
    isLooking = false;
  }
  let isLooking = false; // a stat can hang, as on a network disk
  const watching = setInterval(() => {
    if (isLooking) return;
    isLooking = true;
    void inTurn(loadChanged);
  }, WATCH_INTERVAL_MS).unref();

  return {
    current: () => ring,
    reload: () => inTurn(() => loadAgain(files)),
    close: () => clearInterval(watching),
  };
}

/** Differs when the file, or what a symbolic link leads to, is another. Empty if it cannot be looked at. */
async function versionOf(path: string): Promise<string> {
  try {
    const { ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
    return [ino, size, mtimeNs, ctimeNs].join(' ');
  } catch {
    return '';
  }
}

function filesOf({
  defaultSecrets,
  defaultSecretsFile,
  file,
}: Parameters<typeof createSources>[0]): readonly SecretsFile[] {
  const files: SecretsFile[] = [];
  let setsDefault = defaultSecrets.length > 0 ? 'SIGNING_SECRETS' : undefined;
  if (defaultSecretsFile !== undefined) {
    setsDefault = 'SIGNING_SECRETS_FILE';
    const read = () => readSecretsFile(defaultSecretsFile);
    files.push({ variable: 'SIGNING_SECRETS_FILE', path: defaultSecretsFile, read });
  }
  if (file !== undefined) {
    files.push({ variable: 'SOURCES_FILE', path: file, read: () => readSourcesFile(file, setsDefault) });
  }
  return files;
}

/** @throws what is no ConfigError: that is a bug */
function allFaults(errors: readonly unknown[]): ConfigError {
  return new ConfigError(
    errors.flatMap((error) => {
      if (error instanceof ConfigError) return error.faults;
      throw error;
    }),
  );
}

async function readSecretsFile(file: string): Promise<SecretsBySource> {
  const faults: string[] = [];
  const secrets = parseSecrets('SIGNING_SECRETS_FILE', await readText('SIGNING_SECRETS_FILE', file), faults);
  if (faults.length > 0) throw new ConfigError(faults);
  return new Map([[DEFAULT_SOURCE, secrets]]);
}

/** `setsDefault`: the variable that sets the source `default` already. */
async function readSourcesFile(file: string, setsDefault: string | undefined): Promise<SecretsBySource> {
  const text = await readText('SOURCES_FILE', file);
  const parsed = sourcesFile.safeParse(parseSources(text));
  const repeated = repeatedKeys(text);
  if (repeated.length > 0) throw new ConfigError(repeated);
  if (!parsed.success) throw new ConfigError(parsed.error.issues.map(describeIssue));
  const faults: string[] = [];
  const sources = new Map<string, readonly Secret[]>();
  for (const [name, { secrets }] of Object.entries(parsed.data)) {
    if (name === DEFAULT_SOURCE && setsDefault !== undefined)
      faults.push(`SOURCES_FILE names "default", which ${setsDefault} sets already: keep one`);
    if (name === UNKNOWN_SOURCE)
      faults.push('SOURCES_FILE names "unknown", which is reserved for unknown senders');
    sources.set(
      name,
      secrets.flatMap((secret, index) => toSecret(secret, `${name}.secrets[${index}]`, faults)),
    );
  }
  if (faults.length > 0) throw new ConfigError(faults);
  return sources;
}

/** Quotes only valid names: any other key may be a secret in the wrong place. */
function describeIssue({ code, path, message }: z.core.$ZodIssue): string {
  if (code === 'invalid_key') return 'SOURCES_FILE has a source name that is not 1 to 63 of a-z, 0-9, _ or -';
  const [name, field, index] = path.map(String);
  const place = [name, field].filter((part) => part !== undefined).join('.');
  return ['SOURCES_FILE', place + (index === undefined ? '' : `[${index}]`), message]
    .filter(Boolean)
    .join(' ');
}

/** Of a repeated name only the last one would count, and the secrets of the others would be lost. `text` is JSON. */
function repeatedKeys(text: string): readonly string[] {
  const { repeatsKey, ambiguous } = inspectStructure(text);
  const names = [...ambiguous].filter((name) => SOURCE_NAME.test(name));
  if (names.length > 0) return names.map((name) => `SOURCES_FILE names "${name}" more than once`);
  return repeatsKey ? ['SOURCES_FILE has a key more than once in an object'] : [];
}

/** Without the names: the log is also read by those who may see one source alone, and could then sign for the other. */
function warnOfShared({ all }: KeyRing, log: Logger): void {
  const sourceOf = new Map<string, string>();
  const isShared = all.some(({ source, secret: { fingerprint } }) => {
    const other = sourceOf.get(fingerprint);
    sourceOf.set(fingerprint, source);
    return other !== undefined && other !== source;
  });
  if (isShared) {
    log.warn(
      'two sources have the same secret, so each can sign for the other: "tallyhook sources" shows the same fingerprint for both',
    );
  }
}

/** What the log has of a broken file. */
const fieldsOf = (error: unknown) =>
  error instanceof ConfigError ? { faults: error.faults } : { err: describeError(error) };

function toSecret(text: string, place: string, faults: string[]): Secret[] {
  const secret = createSecret(text);
  if (typeof secret !== 'string') return [secret];
  faults.push(`SOURCES_FILE ${place} ${secret}`);
  return [];
}

async function readText(variable: SecretsFile['variable'], file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    throw new ConfigError([`${variable} cannot be read (${(error as NodeJS.ErrnoException).code})`]);
  }
}

function parseSources(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    // The parser's own message quotes the text around the fault, which may be a secret.
    throw new ConfigError(['SOURCES_FILE is not JSON']);
  }
}
