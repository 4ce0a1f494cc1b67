// `tallyhook sandbox dashboard`: prints an address of the running sandbox's dashboard that signs in once.

import { UsageError } from '../../base/errors.ts';
import { parse } from '../../terminal/arguments.ts';
import type { Io } from '../../terminal/io.ts';
import { createSessions, isServed, signInAddress } from '../index.ts';
import { ACCOUNT_OPTIONS, dataFile, withAccount } from './data.ts';

/** The address alone on standard output, so that it can be taken into a variable. */
export async function dashboard(args: string[], io: Io): Promise<number> {
  const { values } = parse(args, ACCOUNT_OPTIONS);
  const data = dataFile(values.data);
  return withAccount(values, (accounts, account, store) => {
    const url = store.sessions.dashboardUrl();
    if (url === undefined || !isServed(data)) throw new UsageError(`no sandbox runs from ${data}`);
    const sessions = createSessions({ store: store.sessions, accounts, now: () => Date.now() });
    io.complain(`signs in to the account ${account.name} once, within ten minutes:`);
    io.say(signInAddress(url, sessions.newCode(account)));
    return 0;
  });
}
