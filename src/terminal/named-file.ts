// Files that an option or a variable names.

import { readFileSync } from 'node:fs';
import { UsageError } from '../base/errors.ts';

/** @throws UsageError with the name of the option or variable. It names the file only for an option, which the user typed. */
export function readNamedFile(name: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const fault = FAULTS[code ?? ''];
    // A variable may contain a secret in the place of a file's name.
    throw new UsageError(
      fault !== undefined && name.startsWith('--')
        ? `${name}: ${fault(path)}`
        : `${name} cannot be read (${code})`,
    );
  }
}

const FAULTS: Readonly<Record<string, (path: string) => string>> = {
  ENOENT: (path) => `there is no file ${path}`,
  EISDIR: (path) => `${path} is a folder`,
};
