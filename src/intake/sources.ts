// Who may send: the source `default` from SIGNING_SECRETS or its file, and the named ones, which may include it, from
// SOURCES_FILE. Both files are read again when they change and on SIGHUP; a broken one keeps its old set and is logged.

import type { Logger } from 'pino';
import { z } from 'zod';
import { ConfigError } from '../base/errors.ts';
import {
  type ConfigFile,
  parseConfigJson,
  readConfigText,
  watchConfigFiles,
} from '../base/files/config-files.ts';
import { inspectStructure } from '../ledger/index.ts';
import { createSecret, parseSecrets, SECRETS_PER_SOURCE, type Secret } from '../base/signing/secret.ts';
import { DEFAULT_SOURCE, SOURCE_NAME, UNKNOWN_SOURCE } from '../base/text/source-name.ts';
import { createKeyRing, type KeyRing } from './signature.ts';

export type Sources = {
  /** The present set. Call it each time, since a reload replaces the set. */
  readonly current: () => KeyRing;
  /** Reads the files again. Of a broken one it keeps the old set, and logs it. Never rejects. */
  readonly reload: () => Promise<void>;
  readonly close: () => void;
};

const secretEntry = z.union(
  [
    z.string(),
    z.strictObject({
      secret: z.string(),
      until: z.iso.datetime({
        offset: true,
        error: 'has an "until" that is not a time such as 2026-12-01T00:00:00Z',
      }),
    }),
  ],
  { error: 'is not a text, or { "secret": …, "until": … }' },
);

const secretList = z
  .array(secretEntry, {
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
  const fixed: SecretsBySource =
    defaultSecrets.length > 0 ? new Map([[DEFAULT_SOURCE, defaultSecrets]]) : new Map();
  const watched = await watchConfigFiles({
    files: filesOf(options),
    keeps: 'the previous sources stay valid',
    onReadAgain: (files) => {
      ring = toRing();
      log.info({ files, sources: ring.names }, 'sources loaded');
      warnOfShared(ring, log);
    },
    log,
  });
  const toRing = () =>
    createKeyRing(new Map([fixed, ...watched.contents().values()].flatMap((part) => [...part])));
  let ring = toRing();
  warnOfShared(ring, log);
  return { current: () => ring, reload: watched.reload, close: watched.close };
}

function filesOf({
  defaultSecrets,
  defaultSecretsFile,
  file,
}: Parameters<typeof createSources>[0]): readonly ConfigFile<SecretsBySource>[] {
  const files: ConfigFile<SecretsBySource>[] = [];
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

async function readSecretsFile(file: string): Promise<SecretsBySource> {
  const faults: string[] = [];
  const secrets = parseSecrets(
    'SIGNING_SECRETS_FILE',
    await readConfigText('SIGNING_SECRETS_FILE', file),
    faults,
  );
  if (faults.length > 0) throw new ConfigError(faults);
  return new Map([[DEFAULT_SOURCE, secrets]]);
}

/** `setsDefault`: the variable that sets the source `default` already. */
async function readSourcesFile(file: string, setsDefault: string | undefined): Promise<SecretsBySource> {
  const text = await readConfigText('SOURCES_FILE', file);
  const parsed = sourcesFile.safeParse(parseConfigJson('SOURCES_FILE', text));
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

function toSecret(entry: z.infer<typeof secretEntry>, place: string, faults: string[]): Secret[] {
  const { secret: text, until } = typeof entry === 'string' ? { secret: entry } : entry;
  const secret = createSecret(text);
  if (typeof secret !== 'string')
    return [until === undefined ? secret : { ...secret, untilMs: Date.parse(until) }];
  faults.push(`SOURCES_FILE ${place} ${secret}`);
  return [];
}
