// What `npm test` leaves out: these files, each with the reason, and the tests that say `test.skipIf(IS_SHORT_RUN)`. `npm run test:all`,
// which CI runs, has them all, and so has `npm test -- <path>`.

/** 'long' for `npm test`, 'short' for `npm run test:all`, nothing where tests are named. */
const leavesOut = process.env['TEST_LEAVES_OUT'] ?? '';

/** For tests of minutes, or of servers of their own, beside shorter ones of the same kind. */
export const IS_SHORT_RUN = leavesOut === 'long';

/** The cases of a test: those of a short run, and with them the others. */
export const cases = <T>(short: readonly T[], others: readonly T[]): readonly T[] =>
  IS_SHORT_RUN ? short : [...short, ...others];

export const ONLY_IN_ALL: Readonly<Record<string, string>> = {
  'test/torture/torture.test.ts': 'two minutes; torture-short.test.ts kills all that can be killed',
  'test/fault/examples.test.ts':
    'three languages against a broker that is killed; the examples change rarely',
  'test/fault/floods.test.ts': 'thousands of connections that are held until their deadlines',
  'test/fault/guesses.test.ts': 'thousands of guesses, which cost what they are meant to cost',
  'test/fault/subscribers.test.ts':
    'a broker of its own; test/service/subscriber has the rules of a subscriber',
  'test/fault/replay-resume.test.ts': 'ten thousand events; replays-feeding.test.ts resumes shorter replays',
  'test/fault/rabbitmq-folder.test.ts': 'a broker of its own, for what only the scripts do',
  'test/package/package.test.ts': 'makes the package and installs it with npm',
  'test/service/readme.test.ts': 'starts all that a stranger would, servers and tests included',
  'test/service/local-run.test.ts': 'starts all that npm start starts, three times',
  'test/service/operators/audit-million.test.ts':
    'makes a million deliveries; look-up-plans.test.ts has the plans',
  'test/service/sandbox/engine-inputs.test.ts': 'dozens of runs of ffmpeg; engine.test.ts converts, too',
  'test/service/sandbox/engine-limits.test.ts': 'dozens of runs of ffmpeg, 4K among them',
  'test/service/npm-usage.test.ts': 'thirty starts of npm; the texts change rarely',
  'test/service/local-relay.test.ts': 'starts the service as npm start does, sixteen times',
  'test/service/signing-examples.test.ts': 'ninety processes in four languages; the examples change rarely',
  'test/service/cli/sandbox-commands.test.ts':
    'the sandbox in processes of its own; test/service/sandbox has the sandbox',
  'test/fault/log-stall.test.ts': 'two services whose log nobody reads, until their memory shows it',
  'test/service/operators/docs-page.test.ts': 'a browser of its own; api-document.test.ts has the document',
  'test/browser/watching.test.ts': "tests the tests' own browser",
};

/** Short forms of what is in all. */
export const NOT_IN_ALL: Readonly<Record<string, string>> = {
  'test/torture/torture-short.test.ts': 'torture.test.ts has its faults',
};

export function filesLeftOut(): readonly string[] {
  if (leavesOut === 'long') return Object.keys(ONLY_IN_ALL);
  return leavesOut === 'short' ? Object.keys(NOT_IN_ALL) : [];
}
