// Files that an option or a variable names.

import { readFileSync } from 'node:fs';
import { UsageError } from '../errors.ts';

/** @throws UsageError with the name of the option or variable, and not of the file. */
export function readNamedFile(name: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new UsageError(`${name} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}
