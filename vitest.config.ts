import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { filesLeftOut, IS_SHORT_RUN } from './test/only-in-all.ts';
import { patience } from './test/support/patience.ts';

/** Files that take a minute or two, whatever their size. One of them begun last would be waited for alone. */
const LONG = [
  'test/torture/torture',
  'test/model/',
  'test/service/operators/audit-million',
  'test/deploy/',
  'test/fault/',
  'test/browser/',
  'test/service/cli/forward',
  'test/service/sandbox/engine-limits',
  'test/service/local-run',
  'test/service/readme',
];

function rank({ moduleId }: TestSpecification): number {
  const found = LONG.findIndex((part) => moduleId.includes(part));
  return found === -1 ? LONG.length : found;
}

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const largestFirst = await super.sort(files); // oxlint-disable-line unicorn/no-array-sort -- it is no array's
    return largestFirst.toSorted((a, b) => rank(a) - rank(b));
  }
}

/** So that a test that is not pure fails, wherever it is run. */
const NO_SERVICES = { TEST_DATABASE_URL: '', TEST_AMQP_URL: '' };

const UNIT = 'test/unit/**/*.test.ts';
const PROPERTY = 'test/property/**/*.test.ts';

/** They have servers of their own, and what they show depends on the clock: a heartbeat, a deadline, a lease, a proxy's check. */
const FAULTS = ['test/fault/**/*.test.ts', 'test/torture/**/*.test.ts', 'test/deploy/**/*.test.ts'];

/** Only then, since the pure tests take as long as what they load. */
const profile = process.env['TEST_PROFILE'] ? ['test/support/profile.ts'] : [];

/** Projects with another number of workers cannot run at once. */
const AFTER_UNIT = { groupOrder: 1 };
const AFTER_SERVICE = { groupOrder: 2 };

/** What needs a Postgres and a RabbitMQ. */
const WITH_SERVICES = {
  // A worker loads and compiles the service once for all its files: that is a second of processor time for each. What tests start
  // they end, so the next file finds nothing of them.
  isolate: false,
  globalSetup: ['test/support/global-setup.ts'],
  setupFiles: ['test/support/failures.ts'],
  sequence: AFTER_UNIT,
};

// The tests of `unit` and `property` are pure and need nothing. All others need a Postgres and a RabbitMQ of their own:
// `npm test` starts both and names them in TEST_DATABASE_URL and TEST_AMQP_URL.
export default defineConfig({
  test: {
    pool: 'forks',
    sequence: { sequencer: LongestFirst },
    // Most tests wait more than they compute; the default would be one worker on two cores. Measured there: 700 s with three,
    // 655 with four.
    maxWorkers: 4,
    // Only for what hangs: each wait in a test ends earlier, and says what it waited for.
    testTimeout: patience(120_000),
    hookTimeout: patience(120_000),
    teardownTimeout: patience(20_000),
    // A fact that a poll waits for may take long on a busy machine. The default is one second.
    expect: { poll: { timeout: patience(10_000) } },
    setupFiles: profile,
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: [UNIT],
          env: NO_SERVICES,
          // A worker then loads each module once for all files. Pure tests leave nothing behind in it.
          isolate: false,
          // They compute and do not wait: a third worker would only load the modules once more.
          maxWorkers: 2,
        },
      },
      {
        extends: true,
        test: {
          name: 'property',
          include: [PROPERTY],
          env: NO_SERVICES,
          sequence: AFTER_UNIT,
        },
      },
      {
        extends: true,
        test: {
          name: 'service',
          include: ['test/**/*.test.ts'],
          exclude: [UNIT, PROPERTY, ...FAULTS, ...filesLeftOut()],
          ...WITH_SERVICES,
        },
      },
      {
        extends: true,
        test: {
          name: 'fault',
          include: FAULTS,
          exclude: [...filesLeftOut()],
          ...WITH_SERVICES,
          // Two of them keep two cores busy. With more at once a deadline passes because of the others. The few of a short run
          // go along with the others.
          ...(!IS_SHORT_RUN && { maxWorkers: 2, sequence: AFTER_SERVICE }),
        },
      },
    ],
  },
});
