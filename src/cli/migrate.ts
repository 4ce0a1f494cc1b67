// `tallyhook migrate`: brings the database's schema up to date, or says what that would do. The daily partitions are made by `serve`.

import { loadUrls } from '../config.ts';
import { checkSchema, migrate, planMigration } from '../ledger/index.ts';
import { parse } from '../terminal/arguments.ts';
import type { Command } from '../terminal/command.ts';
import { withLocalRun } from '../terminal/environment.ts';
import { flag, optionHelp } from '../terminal/options.ts';
import { terminalWidth } from '../terminal/table.ts';
import { planAsJson, planAsText } from './migration-plan.ts';

const OPTIONS = { plan: flag('say what would be done, and change nothing') } as const;

const help = `Brings the schema of the database in DATABASE_URL up to date. Safe to run again, and several at once.
With MIGRATION_DATABASE_URL it connects as that role, and grants the role of DATABASE_URL what the service needs.
On a newer schema it changes and grants nothing: it succeeds if this program may run on that schema, or ends with 78.

  migrate
${optionHelp(OPTIONS)}

The plan has the migrations that would run, what they lock, the oldest program that may run afterwards, whether the role that
asks may migrate, and with MIGRATION_DATABASE_URL the rights that would change. Any role that may read can ask for it. Piped,
it is a JSON object. The exit code is 0, whatever it says, 78 where the schema or the two roles do not fit, and 1 where the
database cannot be asked.`;

export const migrateCommand: Command = {
  help,
  run: async (args, env, io) => {
    const { values } = parse(args, OPTIONS);
    const { databaseUrl, migrationUrl } = loadUrls(withLocalRun(env));
    if (values.plan === true) {
      const plan = await planMigration(databaseUrl, migrationUrl);
      if (io.stdout.isTTY) io.say(planAsText(plan, { paint: io.paint, width: terminalWidth(io) }));
      else await io.putJson(planAsJson(plan));
      return 0;
    }
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
