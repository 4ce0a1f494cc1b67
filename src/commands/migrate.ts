// `tallyhook migrate`: brings the database's schema up to date. The daily partitions are made by `serve`.

import { type Env, loadUrls } from '../config.ts';
import { migrate } from '../ledger/migrate.ts';
import { say } from './output.ts';

export async function migrateCommand(env: Env): Promise<number> {
  const { databaseUrl } = loadUrls(env);
  const ran = await migrate(databaseUrl);
  say(ran.length === 0 ? 'the schema is up to date' : `migrated: ${ran.join(', ')}`);
  return 0;
}
