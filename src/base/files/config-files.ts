// Files of the configuration that may change while the service runs: read at start, when they change, and when asked. A broken one
// ends the start; later it keeps what it had, and is logged. No line and no error quotes a file.

import { readFile, stat } from 'node:fs/promises';
import { ConfigError, describeError } from '../errors.ts';
import { parseIfJson } from '../json/json.ts';
import type { Logger } from '../log/log.ts';

/** How often a file's stat is compared. That costs nothing, and also sees swapped symbolic links. */
const WATCH_INTERVAL_MS = 1_000;

export type ConfigFile<Content> = {
  /** Which names it, for the log. */
  readonly variable: string;
  readonly path: string;
  /** Throws a ConfigError. */
  readonly read: () => Promise<Content>;
};

export type WatchedFiles<Content> = {
  /** The last valid content of each file, by its variable: a broken one does not hold back the changes of the others. */
  readonly contents: () => ReadonlyMap<string, Content>;
  /** Reads the files again. Of a broken one it keeps the old content, and logs it. Never rejects. */
  readonly reload: () => Promise<void>;
  readonly close: () => void;
};

/**
 * @param options.keeps what the log says of a broken file, after its name: `the previous sources stay valid`
 * @param options.onReadAgain is given the variables of the files that were read
 * @throws ConfigError with the faults of all files: at start there is no older content to keep.
 */
export async function watchConfigFiles<Content>(options: {
  files: readonly ConfigFile<Content>[];
  keeps: string;
  onReadAgain: (variables: readonly string[]) => void;
  log: Logger;
}): Promise<WatchedFiles<Content>> {
  const { files, keeps, onReadAgain, log } = options;
  const valid = new Map<string, Content>();
  const versions = new Map<string, string>(); // of each file when it was last read

  /** @returns the errors of those files that are broken */
  async function readAll(asked: readonly ConfigFile<Content>[]): Promise<ReadonlyMap<string, unknown>> {
    const errors = new Map<string, unknown>();
    for (const { variable, path, read } of asked) {
      versions.set(path, await versionOf(path)); // before it is read, so that a change meanwhile is seen
      await read().then(
        (content) => valid.set(variable, content),
        (error: unknown) => errors.set(variable, error),
      );
    }
    return errors;
  }

  const errors = [...(await readAll(files)).values()];
  if (errors.length > 0) throw allFaults(errors);

  async function loadAgain(asked: readonly ConfigFile<Content>[]): Promise<void> {
    const broken = await readAll(asked);
    for (const [variable, error] of broken) log.error(fieldsOf(error), `${variable} is broken, ${keeps}`);
    const taken = asked.map(({ variable }) => variable).filter((variable) => !broken.has(variable));
    if (taken.length > 0) onReadAgain(taken);
  }
  // One after the other: of two at once, the one that read the older file could finish last.
  let loading = Promise.resolve();
  const inTurn = (load: () => Promise<void>) => {
    loading = loading.then(load);
    return loading;
  };

  /** Only the files that changed: the log would say of the others, too, that they were loaded. */
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
    contents: () => valid,
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

/** @throws what is no ConfigError: that is a bug */
function allFaults(errors: readonly unknown[]): ConfigError {
  return new ConfigError(
    errors.flatMap((error) => {
      if (error instanceof ConfigError) return error.faults;
      throw error;
    }),
  );
}

/** What the log has of a broken file. */
const fieldsOf = (error: unknown) =>
  error instanceof ConfigError ? { faults: error.faults } : { err: describeError(error) };

/** @throws ConfigError */
export async function readConfigText(variable: string, path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new ConfigError([`${variable} cannot be read (${(error as NodeJS.ErrnoException).code})`]);
  }
}

/** @throws ConfigError. The parser's own message would quote the text around the fault, which may be a secret. */
export function parseConfigJson(variable: string, text: string): unknown {
  const json = parseIfJson(text);
  if (json === undefined) throw new ConfigError([`${variable} is not JSON`]);
  return json;
}
