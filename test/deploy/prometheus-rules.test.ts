// deploy/prometheus/rules as Prometheus sees them: what promtool says of them, and for each a case in which it fires and one in which
// nothing does, with two replicas and one alert. All rules are loaded in each case, so the others have to be silent.

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import type { ConditionName } from '../../src/base/conditions.ts';
import { type AlertRule, readAlertRules, RULES } from '../support/alert-rules.ts';
import { createFolder } from '../support/folder.ts';

const promtool = process.env['TEST_PROMTOOL'] ?? '';
const run = promisify(execFile);

const A = 'tallyhook-1:8081';
const B = 'tallyhook-2:8081';

/** A metric with its labels beside `job` and `instance`, and its samples on the two replicas, one each minute from 0. */
type Samples = Readonly<Record<string, readonly [a: string, b: string]>>;

const both = (samples: string): readonly [string, string] => [samples, samples];
const MINUTES = 60;
const always = (value: number) => both(`${value}x${MINUTES}`);
/** A counter at `from` that is at `to` after 30 minutes. */
const counted = (to: number, from = 0) => `${from}x29 ${to}x30`;

/** Two replicas that do well; the first one leads. */
const WELL: Samples = {
  'tallyhook_broker_connected{}': always(1),
  'tallyhook_broker_blocked{}': always(0),
  'tallyhook_database_connected{}': always(1),
  'tallyhook_relay_lease_held{}': [`1x${MINUTES}`, `0x${MINUTES}`],
  'tallyhook_outbox_oldest_seconds{}': always(0.2),
  'tallyhook_outbox_parked{}': always(0),
  'tallyhook_outbox_returned{}': always(0),
  'tallyhook_quarantine_deliveries{}': always(0),
  'tallyhook_conflicts{}': always(0),
  'tallyhook_stuck_jobs{}': always(0),
  'tallyhook_partitions_ahead{table="deliveries"}': always(7),
  'tallyhook_source_last_verified_seconds{source="default"}': always(20),
  'tallyhook_source_delivering_ratio{source="default"}': always(1),
  'tallyhook_database_refusals_total{kind="disk_full"}': always(0),
  'tallyhook_database_sessions_refused_total{pool="intake",reason="starved"}': always(0),
  'tallyhook_connections_ended_total{face="intake",reason="room"}': always(0),
  'tallyhook_connections_ended_total{face="intake",reason="idle"}': [`0+9x${MINUTES}`, `0+9x${MINUTES}`],
  'tallyhook_log_lines_dropped_total{}': always(0),
  'tallyhook_overdue_secret_deliveries_total{source="default"}': always(0),
  'tallyhook_deliveries_total{source="default",outcome="accepted"}': [`0+30x${MINUTES}`, `0+30x${MINUTES}`],
  'tallyhook_deliveries_total{source="default",outcome="unauthorized"}': always(0),
};

type Case = {
  /** What is otherwise than in WELL, and the minute in which it fires. */
  readonly fires: { readonly with: Samples; readonly atMinute: number };
  /** The labels of its one alert, beside the severity and those of a rule over all instances. */
  readonly labels?: Readonly<Record<string, string>>;
  /** What `$value` is in its annotations. */
  readonly value?: string;
  /** Each as near to the threshold as can be, on both replicas: a sum over them would be above it. */
  readonly silent: Readonly<Record<string, Samples>>;
};

const onA = { instance: A };
const brief = `0x10 1x4 0x${MINUTES}`;

const CASES: Readonly<Record<ConditionName, Case>> = {
  'outbox-lag': {
    fires: { with: { 'tallyhook_outbox_oldest_seconds{}': both('0+60x30') }, atMinute: 6 },
    value: '6m 0s',
    silent: { 'the oldest waits for 5 minutes': { 'tallyhook_outbox_oldest_seconds{}': always(300) } },
  },
  'broker-away': {
    fires: { with: { 'tallyhook_broker_blocked{}': [`1x${MINUTES}`, `0x${MINUTES}`] }, atMinute: 1 },
    silent: {
      'only one replica lost the broker': {
        'tallyhook_broker_connected{}': [`0x${MINUTES}`, `1x${MINUTES}`],
      },
      'the broker restarts within a minute': { 'tallyhook_broker_connected{}': both(`1x9 0 1x${MINUTES}`) },
    },
  },
  'no-leader': {
    fires: { with: { 'tallyhook_relay_lease_held{}': always(0) }, atMinute: 1 },
    silent: {
      'the other replica takes over': {
        'tallyhook_relay_lease_held{}': [`1x9 0x${MINUTES}`, `0x10 1x${MINUTES}`],
      },
    },
  },
  'postgres-away': {
    fires: { with: { 'tallyhook_database_connected{}': always(0) }, atMinute: 1 },
    value: '2',
    silent: {
      'Postgres restarts within a minute': { 'tallyhook_database_connected{}': both(`1x9 0 1x${MINUTES}`) },
    },
  },
  'disk-full': {
    fires: {
      with: { 'tallyhook_database_refusals_total{kind="disk_full"}': [counted(3), counted(0)] },
      atMinute: 32,
    },
    silent: {
      'Postgres refuses for another reason': {
        'tallyhook_database_refusals_total{kind="deadlock_or_serialization"}': both(counted(3)),
      },
    },
  },
  'partitions-missing': {
    fires: { with: { 'tallyhook_partitions_ahead{table="publications"}': always(2) }, atMinute: 1 },
    value: '2',
    silent: {
      'there are just 3 days': { 'tallyhook_partitions_ahead{table="publications"}': always(3) },
    },
  },
  parked: {
    fires: { with: { 'tallyhook_outbox_parked{}': always(3) }, atMinute: 5 },
    value: '3',
    silent: { 'an operator decides within 5 minutes': { 'tallyhook_outbox_parked{}': both(brief) } },
  },
  returned: {
    fires: { with: { 'tallyhook_outbox_returned{}': always(3) }, atMinute: 5 },
    value: '3',
    silent: { 'a queue is bound within 5 minutes': { 'tallyhook_outbox_returned{}': both(brief) } },
  },
  'source-silent': {
    fires: {
      with: { 'tallyhook_source_last_verified_seconds{source="default"}': both('3540+60x10') },
      atMinute: 2,
    },
    labels: { source: 'default' },
    value: '1h 1m 0s',
    silent: {
      'it rests at night': {
        'tallyhook_source_last_verified_seconds{source="default"}': always(20_000),
        'tallyhook_source_delivering_ratio{source="default"}': always(19 / 24),
      },
      'it is silent for an hour': {
        'tallyhook_source_last_verified_seconds{source="default"}': always(3_600),
      },
      'it has been gone for a week': {
        'tallyhook_source_last_verified_seconds{source="default"}': always(604_800),
      },
    },
  },
  quarantine: {
    fires: { with: { 'tallyhook_quarantine_deliveries{}': always(4) }, atMinute: 10 },
    value: '4',
    silent: {
      'it is released within 10 minutes': { 'tallyhook_quarantine_deliveries{}': both(`4x9 0x${MINUTES}`) },
    },
  },
  conflicts: {
    fires: { with: { 'tallyhook_conflicts{}': always(1) }, atMinute: 0 },
    value: '1',
    silent: {
      'there are duplicates': {
        'tallyhook_deliveries_total{source="default",outcome="duplicate"}': always(9),
      },
    },
  },
  'stuck-jobs': {
    fires: { with: { 'tallyhook_stuck_jobs{}': always(2) }, atMinute: 10 },
    value: '2',
    silent: { 'it ends within 10 minutes': { 'tallyhook_stuck_jobs{}': both(`2x9 0x${MINUTES}`) } },
  },
  'unauthorized-storm': {
    fires: {
      with: {
        'tallyhook_deliveries_total{source="default",outcome="unauthorized"}': both('0+40x30'),
        'tallyhook_deliveries_total{source="team-a",outcome="unauthorized"}': both('0+2x30'),
      },
      atMinute: 10,
    },
    labels: { source: 'default' },
    value: '800',
    silent: {
      'it is less than half': {
        'tallyhook_deliveries_total{source="default",outcome="unauthorized"}': both('0+29x60'),
      },
      'it is fewer than 100': {
        'tallyhook_deliveries_total{source="default",outcome="unauthorized"}': both('0+4x60'),
        'tallyhook_deliveries_total{source="default",outcome="accepted"}': always(0),
      },
    },
  },
  'secret-overdue': {
    fires: {
      with: { 'tallyhook_overdue_secret_deliveries_total{source="team-a"}': both('0+1x60') },
      atMinute: 60,
    },
    labels: { source: 'team-a' },
    value: '120',
    silent: {
      'it was used before': { 'tallyhook_overdue_secret_deliveries_total{source="team-a"}': always(7) },
    },
  },
  'starved-pool': {
    fires: {
      with: {
        'tallyhook_database_sessions_refused_total{pool="intake",reason="starved"}': [
          `0+2x${MINUTES}`,
          `0x${MINUTES}`,
        ],
      },
      atMinute: 10,
    },
    labels: onA,
    value: '10',
    silent: {
      'Postgres refuses sessions for another reason': {
        'tallyhook_database_sessions_refused_total{pool="intake",reason="unanswered"}': both('0+2x60'),
      },
    },
  },
  'connections-dropped': {
    fires: {
      with: {
        'tallyhook_connections_ended_total{face="intake",reason="room"}': [`0+2x${MINUTES}`, `0x${MINUTES}`],
        'tallyhook_connections_ended_total{face="operators",reason="full"}': [
          `0+2x${MINUTES}`,
          `0x${MINUTES}`,
        ],
      },
      atMinute: 10,
    },
    labels: onA,
    value: '20',
    silent: {
      'idle ones are closed': {
        'tallyhook_connections_ended_total{face="intake",reason="idle"}': both('0+50x60'),
      },
    },
  },
  'log-dropped': {
    fires: {
      with: { 'tallyhook_log_lines_dropped_total{}': [`0+2x${MINUTES}`, `0x${MINUTES}`] },
      atMinute: 10,
    },
    labels: onA,
    value: '10',
    silent: { 'it dropped some before': { 'tallyhook_log_lines_dropped_total{}': always(7) } },
  },
};

/** No replica answers. */
const NOBODY: Samples = Object.fromEntries(Object.keys(WELL).map((name) => [name, both('_')]));

const rules = readAlertRules();
const ruleOf = (condition: string) => rules.find((rule) => rule.condition === condition) as AlertRule;

function seriesOf(samples: Samples) {
  return Object.entries({ ...WELL, ...samples }).flatMap(([name, values]) =>
    [A, B].map((instance, index) => ({
      series: name.replace('{', `{job="tallyhook",instance="${instance}",`).replace(',}', '}'),
      values: values[index],
    })),
  );
}

const filled = (text: string, { labels = {}, value = '' }: Case) =>
  text
    .replaceAll(/\{\{ \$labels\.(\w+) \}\}/g, (_, name: string) => labels[name] ?? '')
    .replaceAll(/\{\{ \$value.*?\}\}/g, value);

/** The one alert of a rule, as promtool compares it: with its labels and texts, and that no other one fires. */
function firing(
  condition: string,
  given: Case,
  { atMinute, job = 'tallyhook' }: { atMinute: number; job?: string },
) {
  const rule = ruleOf(condition);
  const labels = { ...(job !== '' && { job }), ...given.labels, ...rule.labels };
  const shown = Object.entries({ alertname: rule.alert, alertstate: 'firing', ...labels });
  return {
    alert_rule_test: [
      {
        eval_time: `${atMinute}m`,
        alertname: rule.alert,
        exp_alerts: [
          {
            exp_labels: labels,
            exp_annotations: Object.fromEntries(
              Object.entries(rule.annotations).map(([name, text]) => [name, filled(text, given)]),
            ),
          },
        ],
      },
    ],
    promql_expr_test: [
      {
        expr: 'ALERTS{alertstate="firing"}',
        eval_time: `${atMinute}m`,
        exp_samples: [
          { labels: `ALERTS{${shown.map(([name, text]) => `${name}="${text}"`).join(',')}}`, value: 1 },
        ],
      },
    ],
  };
}

/** Nothing ever fires. */
const SILENCE = {
  promql_expr_test: [
    {
      expr: `max_over_time(ALERTS{alertstate="firing"}[${MINUTES}m])`,
      eval_time: `${MINUTES}m`,
      exp_samples: [],
    },
  ],
};

const toTest = (name: string, samples: Samples, expected: object) => ({
  name,
  interval: '1m',
  input_series: seriesOf(samples),
  ...expected,
});

/** @returns what promtool says. @throws with that if a test fails */
async function promtoolTests(tests: readonly object[]): Promise<string> {
  await using folder = await createFolder();
  const file = { rule_files: rules.map((rule) => rule.file), evaluation_interval: '1m', tests };
  const path = await folder.write('test.yml', JSON.stringify(file));
  return (await run(promtool, ['test', 'rules', path])).stdout;
}

const PASSED = 'SUCCESS';

describe.skipIf(!promtool)('promtool', () => {
  test('has nothing to say of the rules and the example', async () => {
    const files = rules.map(({ file }) => file);
    const checked = await run(promtool, ['check', 'rules', '--lint=all', '--lint-fatal', ...files]);
    expect(checked.stdout.match(/SUCCESS: 1 rules found/g)).toHaveLength(files.length);
    const example = join(RULES, '../prometheus.yml');
    const { stdout } = await run(promtool, ['check', 'config', '--syntax-only', example]);
    expect(stdout).toContain('SUCCESS');
  });

  test('nothing fires while two replicas do well', async () => {
    expect(await promtoolTests([toTest('well', {}, SILENCE)])).toContain(PASSED);
  });

  // One run of promtool for each: half a second of processor time.
  test.each(Object.entries(CASES))(
    '%s fires once with two replicas, and nothing else does; below its threshold nothing fires',
    async (condition, given) => {
      const { fires, silent } = given;
      const tests = [
        toTest('it fires', fires.with, firing(condition, given, fires)),
        ...Object.entries(silent).map(([name, samples]) => toTest(name, samples, SILENCE)),
      ];
      expect(await promtoolTests(tests)).toContain(PASSED);
    },
  );

  test('no-leader fires when no replica answers', async () => {
    const expected = firing('no-leader', CASES['no-leader'], { atMinute: 2, job: '' });
    expect(await promtoolTests([toTest('nobody', NOBODY, expected)])).toContain(PASSED);
  });
});
