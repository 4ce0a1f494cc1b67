// What `npm test` leaves out: these files, each with the reason, the tests that say `test.skipIf(IS_SHORT_RUN)`, and some `cases` and
// `runs` of others. `npm run test:all`,
// which CI runs, has them all, and so has `npm test -- <path>`.

/** 'long' for `npm test`, 'short' for `npm run test:all`, nothing where tests are named. */
const leavesOut = process.env['TEST_LEAVES_OUT'] ?? '';

/** For tests of minutes, or of servers of their own, beside shorter ones of the same kind. */
export const IS_SHORT_RUN = leavesOut === 'long';

/** The cases of a test: those of a short run, and with them the others. */
export const cases = <T>(short: readonly T[], others: readonly T[]): readonly T[] =>
  IS_SHORT_RUN ? short : [...short, ...others];

/** Of a property: how many examples are tried. A short run tries a third. */
export const runs = (count: number): number => (IS_SHORT_RUN ? Math.ceil(count / 3) : count);

/** Why files are left out, and which. What stays shows of each promise and each part that it works; these have its combinations. */
const LEFT_OUT: readonly { readonly because: string; readonly files: readonly string[] }[] = [
  {
    because: 'minutes long; a shorter one of the same kind stays',
    files: [
      'test/torture/torture.test.ts', // torture-short
      'test/deploy/tls.test.ts', // tls-https
      'test/fault/floods.test.ts',
      'test/fault/guesses.test.ts', // api-access
      'test/fault/replay-resume.test.ts', // replays-feeding
      'test/service/intake/refusal-flood.test.ts', // refused-writes
      'test/service/operators/audit-million.test.ts', // look-up-plans
      'test/service/relay/hand-off-random.test.ts', // hand-off, and the model
    ],
  },
  {
    because: 'servers of their own, for rarer faults; broker, postgres, leader and process stay',
    files: [
      'test/deploy/pooler.test.ts',
      'test/deploy/proxies-restart.test.ts', // proxies
      'test/deploy/prometheus-alerts.test.ts', // prometheus-rules
      'test/deploy/tls-postgres.test.ts', // tls-https, unit/certificates
      'test/deploy/systemd.test.ts', // units
      'test/deploy/compose.test.ts', // unit/compose
      'test/deploy/broker-rights.test.ts',
      'test/deploy/postgres-rights.test.ts',
      'test/fault/lease-waits.test.ts',
      'test/fault/log-stall.test.ts',
      'test/fault/lost-results.test.ts',
      'test/fault/network.test.ts',
      'test/fault/rabbitmq-folder.test.ts',
      'test/fault/readiness.test.ts',
      'test/fault/restore.test.ts',
      'test/fault/standby.test.ts',
      'test/fault/subscribers.test.ts',
      'test/fault/watch.test.ts', // service/watch, unit/watch
      'test/service/ledger/pgbouncer.test.ts',
      'test/service/operators/destinations.test.ts', // destinations-faults, unit/operators/destinations
    ],
  },
  {
    because: 'a browser; acting-pages walks through the pages, and test/service/console reads them',
    files: [
      'test/browser/audit-pages.test.ts',
      'test/browser/console-live.test.ts',
      'test/browser/console-overview.test.ts',
      'test/browser/console-script.test.ts',
      'test/browser/sandbox-dashboard.test.ts',
      'test/browser/watching.test.ts',
      'test/service/operators/docs-page.test.ts',
    ],
  },
  {
    because: 'many programs, started one by one; what they start changes rarely, or has tests of its own',
    files: [
      'test/fault/examples.test.ts',
      'test/package/package.test.ts',
      'test/service/cli/doctor.test.ts',
      'test/service/cli/processes.test.ts', // cli-usage and commands call the same
      'test/service/cli/sandbox-commands.test.ts',
      'test/deploy/image.test.ts', // unit/dockerfile
      'test/service/local-relay.test.ts',
      'test/service/local-run.test.ts',
      'test/service/npm-usage.test.ts',
      'test/service/readme.test.ts',
      'test/service/signing-examples.test.ts',
      'test/deploy/upgrades.test.ts', // rollout, migrations-ahead
      'test/service/sandbox/signature-vectors.test.ts',
    ],
  },
  {
    because: 'the sandbox’s conversions and long stories; its API, files and webhooks stay',
    files: [
      'test/service/sandbox/engine.test.ts',
      'test/service/sandbox/engine-inputs.test.ts',
      'test/service/sandbox/engine-limits.test.ts',
      'test/service/sandbox/files-clips.test.ts',
      'test/service/sandbox/jobs-restart.test.ts',
      'test/service/sandbox/limits.test.ts',
      'test/service/sandbox/webhooks-retries.test.ts',
    ],
  },
  {
    because: 'every page and every command of what the API’s tests ask for, too',
    files: [
      'test/service/cli/cli-orders.test.ts', // api-outbox-orders, cli-acting
      'test/service/cli/cli-reading.test.ts',
      'test/service/cli/commands.test.ts', // cli-usage
      'test/service/cli/doctor-faults.test.ts', // its checks are in test/unit/cli
      'test/service/cli/forward.test.ts',
      'test/service/console/audit-lists.test.ts',
      'test/service/console/delivery-page.test.ts',
      'test/service/console/event-page.test.ts',
      'test/service/console/forged.test.ts', // forged-requests
      'test/service/console/job-page.test.ts',
      'test/service/console/replay-pages.test.ts',
      'test/service/console/overview.test.ts',
      'test/service/console/roles.test.ts', // api-access
      'test/service/console/sources.test.ts',
    ],
  },
  {
    because: 'large or unusual ledgers, and all combinations of what stays in a few',
    files: [
      'test/service/http/broken-http.test.ts', // http
      'test/service/ledger/index-entries.test.ts',
      'test/service/ledger/leftovers.test.ts',
      'test/service/ledger/migration-sessions.test.ts', // start, migrations-ahead
      'test/service/ledger/retention.test.ts',
      'test/service/ledger/roles.test.ts',
      'test/service/ledger/rollout.test.ts',
      'test/service/ledger/save-content.test.ts',
      'test/service/operators/api-bad-input.test.ts', // api-lists, api-access and api-document refuse some of each kind
      'test/service/operators/api-discards.test.ts', // api-outbox-orders, api-quarantine-orders
      'test/service/operators/api-groups.test.ts',
      'test/service/operators/api-isolation.test.ts',
      'test/service/operators/api-live.test.ts', // api-streams, console/live
      'test/service/operators/api-outbox.test.ts', // api-outbox-orders
      'test/service/operators/api-outbox-depth.test.ts',
      'test/service/operators/api-quarantine.test.ts', // api-quarantine-orders
      'test/deploy/sizes.test.ts', // api-sizes
      'test/service/operators/api-story.test.ts',
      'test/service/operators/audit-busy-job.test.ts',
      'test/service/operators/audit-many-days.test.ts',
      'test/service/operators/audit-many-sources.test.ts',
      'test/service/operators/audit-sources.test.ts',
      'test/service/operators/replays-copies.test.ts', // replays-feeding
      'test/service/operators/replays-troubles.test.ts',
      'test/service/relay/copies.test.ts',
      'test/service/relay/relay-window.test.ts',
    ],
  },
];

export const ONLY_IN_ALL: ReadonlySet<string> = new Set(LEFT_OUT.flatMap(({ files }) => files));

/** Short forms of what is in all. */
export const NOT_IN_ALL: ReadonlySet<string> = new Set([
  'test/torture/torture-short.test.ts', // torture.test.ts has its faults
]);

export function filesLeftOut(): readonly string[] {
  if (leavesOut === 'long') return [...ONLY_IN_ALL];
  return leavesOut === 'short' ? [...NOT_IN_ALL] : [];
}
