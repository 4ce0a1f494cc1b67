// The sandbox's data file, and an account in it. `tallyhook sandbox tokens`, `account` and `dashboard` write to it beside a
// sandbox that runs from it, which sees each change with its next request.

import { statSync } from 'node:fs';
import { UsageError } from '../../base/errors.ts';
import { TEXT } from '../../terminal/arguments.ts';
import {
  type Account,
  type Accounts,
  checkName,
  createAccounts,
  IN_MEMORY,
  openStore,
  type Store,
} from '../index.ts';
import { DEFAULT_ACCOUNT, DEFAULT_DATA } from './help.ts';

export const ACCOUNT_OPTIONS = { data: TEXT, account: TEXT } as const;

/** What `--data` names. @throws UsageError */
export function dataFile(given: string = DEFAULT_DATA): string {
  const isFolder = statSync(given, { throwIfNoEntry: false })?.isDirectory() ?? false;
  if (given === '' || isFolder) throw new UsageError('--data takes a file, or ":memory:"');
  return given;
}

/** Opens what `--data` and `--account` name while `use` runs. @throws UsageError */
export function withAccount(
  values: { readonly data?: string | undefined; readonly account?: string | undefined },
  use: (accounts: Accounts, account: Account, store: Store) => number,
): number {
  const data = dataFile(values.data);
  if (data === IN_MEMORY) throw new UsageError('--data takes a file here: memory is not shared');
  const name = checkName('--account', values.account ?? DEFAULT_ACCOUNT);
  const store = openStore(data);
  try {
    const accounts = createAccounts({ store: store.accounts, now: () => Date.now() });
    return use(accounts, accounts.open(name), store);
  } finally {
    store.close();
  }
}
