// `tallyhook migrate`: brings the database's schema up to date. The daily partitions are made by `serve`.

import { loadUrls } from '../config.ts';
import { checkSchema, migrate } from '../ledger/index.ts';
import { parse } from '../terminal/arguments.ts';
import type { Command } from '../terminal/command.ts';
import { withLocalRun } from '../terminal/environment.ts';

const help = `Brings the schema of the database in DATABASE_URL up to date. Safe to run again, and several at once.
With MIGRATION_DATABASE_URL it connects as that role, and grants the role of DATABASE_URL what the service needs.
On a newer schema it changes and grants nothing: it succeeds if this program may run on that schema, or ends with 78.

  migrate`;

export const migrateCommand: Command = {
  help,
  run: async (args, env, io) => {
    parse(args, {});
    const { databaseUrl, migrationUrl } = loadUrls(withLocalRun(env));
    const ran = await migrate(databaseUrl, migrationUrl);
    const newer = await checkSchema(databaseUrl);
    io.say(summary(ran, newer));
    return 0;
  },
};

function summary(ran: readonly string[], newer: readonly string[]): string {
  if (ran.length > 0) return `migrated: ${ran.join(', ')}`;
  if (newer.length === 0) return 'the schema is up to date';
  return `the schema has ${newer.join(', ')}, and this older program may run on it: nothing was changed`;
}
