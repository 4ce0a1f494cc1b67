// `npm run check:fast`: format, lint, types and the unit tests, for the time between two changes. Starts no services. The
// last line counts as that of `npm test` does.

import { runSteps, runTests, tallyAll } from './checks.ts';
import { createProgress } from './output.ts';
import { makeThrowAwayFolder } from './services/folders.ts';

const code = await tallyAll(async (guard) => {
  const run = { guard, folder: makeThrowAwayFolder(guard), progress: createProgress() };
  const results = await runSteps(run);
  return [...results, await runTests(['--project=unit', '--reporter=dot'], run)];
});
process.exit(code);
