// Postgres refuses to run as root. This file finds the account to run it as instead, and checks what that account can reach: a
// home folder is often closed to all others. Creates no accounts.

import { spawnSync } from 'node:child_process';
import { chownSync, statSync } from 'node:fs';

export type Account = { readonly uid: number; readonly gid: number };

const ACCOUNTS = ['postgres', 'nobody'];

/**
 * The account to run a server as; undefined means our own. An existing `dataFolder` decides by its owner, since accounts may
 * have been added or removed since it was made.
 */
export function accountFor(dataFolder?: string): Account | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const owner = dataFolder === undefined ? undefined : statSync(dataFolder, { throwIfNoEntry: false });
  if (owner !== undefined && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid };
  for (const name of ACCOUNTS) {
    const [uid, gid] = [idOf('-u', name), idOf('-g', name)];
    if (uid !== undefined && gid !== undefined) return { uid, gid };
  }
  throw new Error(
    `Postgres does not run as root, and there is no account ${ACCOUNTS.join(' or ')} to run it under`,
  );
}

export function canEnter(folder: string, account: Account): boolean {
  return spawnSync('/bin/sh', ['-c', 'cd "$0"', folder], { cwd: '/', ...account }).status === 0;
}

/** By trying it, since it also depends on libraries and parent folders. */
export function canRun(program: string, account: Account): boolean {
  return spawnSync(program, ['--version'], { cwd: '/', ...account }).status === 0;
}

export function giveTo(account: Account | undefined, path: string): void {
  if (account !== undefined) chownSync(path, account.uid, account.gid);
}

function idOf(flag: '-u' | '-g', name: string): number | undefined {
  const { status, stdout } = spawnSync('id', [flag, name], { encoding: 'utf8' });
  // macOS prints the id of `nobody`, -2, as an unsigned number.
  return status === 0 ? Number(stdout) | 0 : undefined;
}
