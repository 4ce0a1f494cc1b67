// All persistent state of the sandbox in one database: accounts, jobs, notifications, sessions. The server and the commands open
// it.

import { type AccountStore, createAccountStore } from './accounts.ts';
import { type Database, openDatabase } from './database.ts';
import { createJobStore, type JobStore } from './jobs.ts';
import { createNotificationStore } from './notifications.ts';
import { createSessionStore, type SessionStore } from './sessions.ts';
import type { NotificationStore } from '../webhooks/notifications.ts';

export type Store = Pick<Database, 'transaction' | 'close'> & {
  readonly accounts: AccountStore;
  readonly jobs: JobStore;
  readonly notifications: NotificationStore;
  readonly sessions: SessionStore;
};

/** @throws SchemaError, as `openDatabase` does. */
export function openStore(file: string): Store {
  const database = openDatabase(file);
  return {
    accounts: createAccountStore(database),
    jobs: createJobStore(database),
    notifications: createNotificationStore(database),
    sessions: createSessionStore(database),
    transaction: database.transaction,
    close: database.close,
  };
}
