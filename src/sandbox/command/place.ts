// Where a sandbox keeps its things: the data file, and what has its name and stands beside it.

import { basename, dirname, join } from 'node:path';
import { ConfigError } from '../../base/errors.ts';
import { IN_MEMORY, isServed } from '../index.ts';
import { DATA_NAME, FILES_FOLDER, LOCAL_FOLDER } from './help.ts';

export type Place = {
  readonly data: string;
  /** The file server's folder. */
  readonly files: string;
  /** For the token of the printed `curl` line. Undefined where the data is in memory. */
  readonly tokenFile: string | undefined;
};

/** More at a time are a mistake. */
const PLACES_MAX = 9;

/** For `sandbox.db`: `sandbox-files` and `sandbox-token`. */
export function placeOf(data: string): Place {
  if (data === IN_MEMORY) return { data, files: FILES_FOLDER, tokenFile: undefined };
  const name = join(dirname(data), basename(data, '.db'));
  return { data, files: `${name}-files`, tokenFile: `${name}-token` };
}

/**
 * The first place in `folder` from which no sandbox runs: that of `sandbox.db`, `sandbox-2.db` and so on. A second sandbox so
 * finds its own data again, as long as the first one runs.
 * @throws ConfigError if all are taken
 */
export function freePlace(folder = LOCAL_FOLDER): Place {
  const names = Array.from({ length: PLACES_MAX }, (_, index) => (index === 0 ? '' : `-${index + 1}`));
  const data = names.map((name) => join(folder, `${DATA_NAME}${name}.db`)).find((file) => !isServed(file));
  if (data !== undefined) return placeOf(data);
  throw new ConfigError([`${PLACES_MAX} sandboxes run in ${folder}: end one, or name a file with --data`]);
}
