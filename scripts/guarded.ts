// The frame of a script that starts processes: it reads its options, ends what it started however it ends, and gives an exit code.

import { endOnRequest } from './ending.ts';
import { complain, complainOfUsage, explain } from './output.ts';
import { createGuard, type Guard } from './services/guard.ts';

const WRONG_USAGE = 2;

/**
 * @param command as it is called, for messages: `npm run pack`
 * @param work gives an exit code. What it throws is printed, unless somebody asked for the end
 * @returns an exit code: of `work`; 1 if it failed; 2 if `readOptions` threw; 128 and its number after a signal
 */
export async function runGuarded<Options>(
  command: string,
  readOptions: () => Options,
  work: (guard: Guard, options: Options, isAskedToEnd: () => boolean) => Promise<number>,
): Promise<number> {
  let options: Options;
  try {
    options = readOptions();
  } catch (error) {
    complainOfUsage(command, error);
    return WRONG_USAGE;
  }
  const guard = createGuard();
  const ending = endOnRequest(guard);
  try {
    return await work(guard, options, ending.isAsked);
  } catch (error) {
    if (!ending.isAsked()) complain(`\n${explain(error)}`);
    return ending.exitCode() ?? 1;
  } finally {
    await guard.close();
  }
}
