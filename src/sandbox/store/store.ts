// All that the sandbox remembers, behind one file: accounts, jobs, and notices. The service and the commands open it alike.

import { type AccountStore, createAccountStore } from './accounts.ts';
import { type Database, openDatabase } from './database.ts';
import { createJobStore, type JobStore } from './jobs.ts';
import { createNoticeStore } from './notifications.ts';
import type { NoticeStore } from '../webhooks/deliverer.ts';

export type Store = Pick<Database, 'transaction' | 'close'> & {
  readonly accounts: AccountStore;
  readonly jobs: JobStore;
  readonly notices: NoticeStore;
};

/** @throws SchemaError */
export function openStore(file: string): Store {
  const database = openDatabase(file);
  return {
    accounts: createAccountStore(database),
    jobs: createJobStore(database),
    notices: createNoticeStore(database),
    transaction: database.transaction,
    close: database.close,
  };
}
