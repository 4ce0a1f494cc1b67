// `npm run check:fast`: format, lint, types and the unit tests, for the time between two changes. Starts no services. The
// last line counts as that of `npm test` does.

import { parseArgs } from 'node:util';
import { runSteps, runTests, tallyAll } from './checks.ts';
import { complainOfUsage, createProgress } from './output.ts';
import { makeThrowAwayFolder } from './services/folders.ts';

function isUsageRight(): boolean {
  try {
    parseArgs({});
    return true;
  } catch (error) {
    complainOfUsage('npm run check:fast', error);
    return false;
  }
}

if (!isUsageRight()) process.exit(2);
const code = await tallyAll(async (guard) => {
  const run = { guard, folder: makeThrowAwayFolder(guard), progress: createProgress() };
  const results = await runSteps(run);
  return [...results, await runTests(['--project=unit', '--reporter=dot'], run)];
});
process.exit(code);
