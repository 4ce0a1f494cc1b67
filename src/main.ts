// The process of the command line, which bin/tallyhook.js loads: the exit code is what the command returns (cli/run.ts).

import { createIo } from './terminal/io.ts';
import { reportError } from './terminal/report.ts';
import { run } from './cli/run.ts';

const io = createIo(process);
const args = process.argv.slice(2);
/** Its output is a log: it keeps running when nobody reads that, and flushes the last lines itself. */
const isService = args[0] === 'serve';

if (!isService) io.whenOutputCloses((code) => process.exit(code));
process.exitCode = await run(args, process.env, io).catch((error: unknown) =>
  reportError(io, error, undefined),
);
// A timer or socket that was left open must not keep a finished command alive. Output is flushed first, so that an error of
// writing is reported.
if (isService) process.exit();
process.stdout.write('', () => setImmediate(() => process.exit()));
