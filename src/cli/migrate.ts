// `tallyhook migrate`: brings the database's schema up to date. The daily partitions are made by `serve`.

import { loadUrls } from '../config.ts';
import { migrate } from '../ledger/index.ts';
import { parse } from './arguments.ts';
import type { Command } from './command.ts';
import { withLocalRun } from './environment.ts';
import { say } from './output.ts';

const help = `Brings the schema of the database in DATABASE_URL up to date. Safe to run again, and several at once.
With MIGRATION_DATABASE_URL it connects as that role, and grants the role of DATABASE_URL what the service needs.

  migrate`;

export const migrateCommand: Command = {
  help,
  run: async (args, env) => {
    parse(args, {});
    const { databaseUrl, migrationUrl } = loadUrls(withLocalRun(env));
    const ran = await migrate(databaseUrl, migrationUrl);
    say(ran.length === 0 ? 'the schema is up to date' : `migrated: ${ran.join(', ')}`);
    return 0;
  },
};
