// The sandbox's data file, and an account in it. `tallyhook sandbox tokens` and `account` write to it beside a sandbox that
// runs from it, which sees each change with its next request.

import { statSync } from 'node:fs';
import { UsageError } from '../errors.ts';
import { type Account, type Accounts, createAccounts, IN_MEMORY, openStore } from '../sandbox/index.ts';
import { TEXT } from './arguments.ts';
import { DEFAULT_ACCOUNT, DEFAULT_DATA } from './sandbox-help.ts';

export const ACCOUNT_OPTIONS = { data: TEXT, account: TEXT } as const;

const NAME_MAX_LENGTH = 100;

/** What `--data` names. @throws UsageError */
export function dataFile(given: string = DEFAULT_DATA): string {
  const isFolder = statSync(given, { throwIfNoEntry: false })?.isDirectory() ?? false;
  if (given === '' || isFolder) throw new UsageError('--data takes a file, or ":memory:"');
  return given;
}

/** Opens what `--data` and `--account` name while `use` runs. @throws UsageError */
export function withAccount(
  values: { readonly data?: string | undefined; readonly account?: string | undefined },
  use: (accounts: Accounts, account: Account) => number,
): number {
  const data = dataFile(values.data);
  if (data === IN_MEMORY) throw new UsageError('--data takes a file here: memory is not shared');
  const name = checkName('--account', values.account ?? DEFAULT_ACCOUNT);
  const store = openStore(data);
  try {
    const accounts = createAccounts({ store: store.accounts, now: () => Date.now() });
    return use(accounts, accounts.open(name));
  } finally {
    store.close();
  }
}

/** @throws UsageError */
export function checkName(option: string, name: string): string {
  if (name.length > 0 && name.length <= NAME_MAX_LENGTH && !/\p{C}/u.test(name)) return name;
  throw new UsageError(`${option} takes 1 to ${NAME_MAX_LENGTH} printable characters`);
}
