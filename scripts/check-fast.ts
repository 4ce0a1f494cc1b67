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
  // At once: each has a time in which it keeps one core busy alone.
  const [results, tests] = await Promise.all([
    runSteps(run),
    runTests(['--project=unit', '--reporter=dot'], run, { TEST_LEAVES_OUT: 'long' }), // as `npm test` does
  ]);
  return [...results, tests];
});
process.exit(code);
