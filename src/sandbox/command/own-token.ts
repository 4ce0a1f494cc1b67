// The token of the `curl` line that the sandbox prints. It is kept in a file, readable by its owner alone, since the data has
// only its hash: so the line works at every start, and shows no secret.

import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type Accounts, SCOPES } from '../index.ts';
import { DEFAULT_ACCOUNT } from './help.ts';

/** @returns the value: the one in `file` if it is valid, or else a new one, which is written there */
export function ownToken(accounts: Accounts, file: string | undefined): string {
  const before = file === undefined ? undefined : readIfThere(file);
  if (before !== undefined && typeof accounts.identify(`Bearer ${before}`) === 'object') return before;
  const { value } = accounts.createToken({
    account: accounts.open(DEFAULT_ACCOUNT),
    name: 'first token',
    environment: 'live',
    scopes: SCOPES,
    expiresAt: null,
  });
  if (file !== undefined) replace(file, `${value}\n`);
  return value;
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** A file that is there keeps its permissions when it is written: so it is removed first. */
function replace(file: string, text: string): void {
  rmSync(file, { force: true });
  writeFileSync(file, text, { mode: 0o600, flag: 'wx' });
}
