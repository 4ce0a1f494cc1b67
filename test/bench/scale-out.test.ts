import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { findQuotas } from '../../bench/quotas.ts';
import type { Figures, Results, Run, ScaleOutCase, SubjectName } from '../../bench/results.ts';
import {
  BYTES,
  LEDGER_EVENTS,
  type Measured,
  measuredIn,
  modelOf,
  modelTable,
  RATES,
  scaleOutSections,
} from '../../bench/scale-out-report.ts';

const page = (name: string) => readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8');

/** Round figures: an event costs 100 µs of each, and one leader's relay publishes 10,000 in a second. */
const measured: Measured = {
  intake: { service: 70, postgres: 60, rabbitmq: 0 },
  relay: { service: 30, postgres: 40, rabbitmq: 100 },
  both: { service: 90, postgres: 80, rabbitmq: 100 },
  relayPerS: 10_000,
  publisherPerS: 20_000,
  bothPerS: 5_000,
  sessionsMax: 20,
};

describe('the model of larger installations', () => {
  test('few events take hardly a core, and two replicas, so that one may go', () => {
    const { cores, installations, replicas, sessions, relayShare, brokerShare } = modelOf(measured, 10);
    expect(cores.service).toBeCloseTo(0.001, 9);
    expect({ installations, replicas, sessions }).toEqual({ installations: 1, replicas: 2, sessions: 40 });
    expect(relayShare).toBeCloseTo(0.001, 9);
    expect(brokerShare).toBeCloseTo(0.0005, 9);
  });

  test('more than one leader can publish takes several installations, each with replicas of its own', () => {
    const { cores, installations, replicas, sessions } = modelOf(measured, 100_000);
    expect(cores.service).toBeCloseTo(10, 9);
    expect(cores.postgres).toBeCloseTo(10, 9);
    expect(cores.rabbitmq).toBeCloseTo(10, 9);
    expect({ installations, replicas, sessions }).toEqual({ installations: 10, replicas: 20, sessions: 40 });
    expect(modelOf(measured, 100_001).installations).toBe(11);
  });

  test('what costs more when intake and relay work at once counts with that', () => {
    const dearer = { ...measured, both: { service: 90, postgres: 80, rabbitmq: 150 } };
    const { cores } = modelOf(dearer, 10_000);
    expect(cores.service).toBeCloseTo(1, 9);
    expect(cores.rabbitmq).toBeCloseTo(1.5, 9);
  });

  test('a replica is filled to 70 % of its core', () => {
    const one = { ...measured, relayPerS: 1_000_000 };
    expect(modelOf(one, 14_000).replicas).toBe(2);
    expect(modelOf(one, 14_001).replicas).toBe(3);
    expect(modelOf(one, 14_001).sessions).toBe(60);
  });

  test('bytes are those of deploy.md', () => {
    const { walMBPerS, diskGBPerDay } = modelOf(measured, 1_000);
    expect(walMBPerS).toBeCloseTo(2.392, 9);
    expect(diskGBPerDay).toBeCloseTo(127.872, 9);
    const deploy = page('deploy.md');
    expect(deploy).toContain(`\`r\` × 86,400 × 31 × ${BYTES.kept} bytes`);
    expect(deploy).toContain(`\`r\` × 86,400 × ${BYTES.forGood} bytes a day`);
    expect(deploy).toContain(`\`r\` × ${BYTES.wal.toLocaleString('en')} bytes a second`);
    expect(deploy).toContain(`most events in a ledger | ${LEDGER_EVENTS / 1e6} million`);
  });

  test('a dagger marks what is above the highest rate and the longest ledger that were measured', () => {
    const rows = modelTable(measured).split('\n');
    const cells = (name: string) =>
      rows
        .find((row) => row.startsWith(`| ${name} |`))
        ?.split(' | ')
        .slice(1);
    const marked = (name: string) => cells(name)?.map((cell) => cell.includes('†'));
    expect(RATES).toEqual([10, 1_000, 100_000]);
    expect(marked('service, cores')).toEqual([false, false, true]);
    expect(marked('disk, a day')).toEqual([false, true, true]);
    expect(marked('disk, after 30 days')).toEqual([true, true, true]);
    expect(cells('installations, at least')).toEqual(['1', '1', '10 † |']);
    expect(rows.at(-1)).toBe(
      'Above 5,000 events a second, and above 10,000,000 events in a ledger, this is arithmetic (†).',
    );
  });
});

function run(name: ScaleOutCase, subject: SubjectName, variant: string, figures: Figures): Run {
  return { case: name, subject, variant, round: 1, startedAt: '2026-11-27T00:00:00Z', figures };
}

const replicas = (count: number, figures: Figures) =>
  run('replicas with a quota', 'tallyhook', `${count} ${count === 1 ? 'replica' : 'replicas'}`, figures);

const RUNS: readonly Run[] = [
  replicas(8, { acksPerS: 1_600, confirmedPerS: 1_200, sessions: 140, sessionsMax: 160, busyCores: 1.25 }),
  replicas(1, { acksPerS: 200, confirmedPerS: 200, sessions: 18, sessionsMax: 20, busyCores: 0.3 }),
  run('relay alone', 'tallyhook', 'quorum queue', {
    confirmedPerS: 10_000,
    cpuMsPer1000: { tallyhook: 30, postgres: 40, rabbitmq: 100, subscriber: 10 },
  }),
  run('relay alone', 'tallyhook', 'classic queue', {
    confirmedPerS: 12_000,
    cpuMsPer1000: { tallyhook: 31, postgres: 41, rabbitmq: 61, subscriber: 11 },
  }),
  run('relay alone', 'confirm publisher', 'quorum queue', {
    confirmedPerS: 20_000,
    cpuMsPer1000: { 'confirm publisher': 11, postgres: 0, rabbitmq: 60, subscriber: 9 },
  }),
  run('intake alone', 'tallyhook, broker down', '64 connections', {
    acksPerS: 4_000,
    cpuMsPer1000: { tallyhook: 70, postgres: 60, rabbitmq: 0 },
  }),
  run('intake and relay', 'tallyhook', '64 connections', {
    acksPerS: 5_000,
    confirmedPerS: 5_000,
    cpuMsPer1000: { tallyhook: 90, postgres: 80, rabbitmq: 100 },
  }),
];

const results = (runs: readonly Run[]) =>
  ({
    hardware: {},
    startedAt: '2026-11-27T00:00:00Z',
    endedAt: '',
    skipped: ['one'],
    runs,
  }) as unknown as Results;

describe('the tables of docs/scale.md', () => {
  const sections = new Map(scaleOutSections(results(RUNS)).map(({ name, text }) => [name, text]));

  test('each has its place in the document', () => {
    for (const name of sections.keys()) {
      expect(page('scale.md')).toContain(`<!-- bench:${name} -->`);
      expect(page('scale.md')).toContain(`<!-- /bench:${name} -->`);
    }
  });

  test('replicas are compared with one, and their sessions with what they may open', () => {
    expect(sections.get('replicas-alone')?.split('\n').slice(2)).toEqual([
      '| 1 replica | 200 | 1.00 × | 200 | 1.00 × | 0.30 | 18 of 20 | – MiB |',
      '| 8 replicas | 1,600 | 8.00 × | 1,200 | 6.00 × | 1.3 | 140 of 160 | – MiB |',
    ]);
  });

  test('the relay is compared with the publisher on the same type of queue', () => {
    expect(sections.get('relay-alone')?.split('\n').slice(2)).toEqual([
      '| one leader’s relay, quorum queue | 10,000 | 0.50 × | 30 | 40 | 100 | 10 | 0.30 | 0.40 | 1.0 | 0.10 |',
      '| bare publisher, quorum queue | 20,000 | 1.00 × | 11 | 0 | 60 | 9 | 0.22 | 0 | 1.2 | 0.18 |',
      '| one leader’s relay, classic queue | 12,000 | – | 31 | 41 | 61 | 11 | 0.37 | 0.49 | 0.73 | 0.13 |',
    ]);
  });

  test('the model reckons with what was measured, and is left out if something is missing', () => {
    expect(measuredIn(RUNS)).toEqual(measured);
    for (const missing of RUNS.filter(({ variant }) => !/^8|classic/.test(variant))) {
      const names = scaleOutSections(results(RUNS.filter((each) => each !== missing)));
      expect(names.map(({ name }) => name)).not.toContain('model');
    }
  });

  test('what was skipped is said', () => {
    expect(sections.get('scale-about')).toContain('Skipped: one.');
  });
});

const GROUPS = '/sys/fs/cgroup';
const unguarded = { removeInTheEnd: () => {} };

function canLimit(): boolean {
  try {
    findQuotas(unguarded);
    return true;
  } catch {
    return false;
  }
}

/** Puts a process of its guard into a group, and prints which. */
const LIMITED = `
  import { readFileSync } from 'node:fs';
  import { findQuotas } from ${JSON.stringify(new URL('../../bench/quotas.ts', import.meta.url))};
  import { createGuard } from ${JSON.stringify(new URL('../../scripts/services/guard.ts', import.meta.url))};
  const guard = createGuard();
  const ending = { signal: 'SIGTERM', graceMs: 1_000 };
  const { pid } = guard.spawn('sleep', ['600'], { env: process.env, cwd: '/', ending, output: 'inherit' });
  findQuotas(guard)(pid).limit(0.5);
  process.stdout.write(readFileSync('/proc/' + pid + '/cgroup', 'utf8').match(/tallyhook-bench-\\w+/)[0]);
  setInterval(() => {}, 1_000);
`;

function makeRoot(layout: 'v1' | 'v2'): { root: string; parent: string } {
  const root = mkdtempSync(join(tmpdir(), 'tallyhook-groups-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  const parent = layout === 'v1' ? join(root, 'cpu') : root;
  mkdirSync(parent, { recursive: true });
  if (layout === 'v1') writeFileSync(join(parent, 'tasks'), '');
  else writeFileSync(join(parent, 'cgroup.subtree_control'), 'cpuset cpu pids\n');
  return { root, parent };
}

const groupsIn = (folder: string) =>
  readdirSync(folder).filter((name) => name.startsWith('tallyhook-bench-'));

describe('quotas', () => {
  test.each([
    ['v1', { 'cpu.cfs_period_us': '20000', 'cpu.cfs_quota_us': '1000' }, { 'cpu.cfs_quota_us': '-1' }],
    ['v2', { 'cpu.max': '1000 20000' }, { 'cpu.max': 'max 20000' }],
  ] as const)(
    'a process has a group of its own in cgroup %s, with a limit or none',
    (layout, limited, free) => {
      const { root, parent } = makeRoot(layout);
      const quota = findQuotas(unguarded, root)(42);
      const [group = ''] = groupsIn(parent);
      const read = (name: string) => readFileSync(join(parent, group, name), 'utf8');
      expect(read('cgroup.procs')).toBe('42');
      quota.limit(0.05);
      for (const [name, content] of Object.entries(limited)) expect(read(name)).toBe(content);
      quota.limit(undefined);
      for (const [name, content] of Object.entries(free)) expect(read(name)).toBe(content);
    },
  );

  test('without groups, or a controller for the processor, it says so', () => {
    const { root, parent } = makeRoot('v2');
    expect(() => findQuotas(unguarded, join(root, 'none'))).toThrow('there are no control groups');
    writeFileSync(join(parent, 'cgroup.subtree_control'), 'cpuset pids\n');
    expect(() => findQuotas(unguarded, root)).toThrow('no controller for the processor');
  });

  test.runIf(canLimit())('the group of a benchmark that is killed is removed, too', async () => {
    const child = spawn(process.execPath, ['--input-type=module', '--eval', LIMITED], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [name] = await once(child.stdout, 'data');
    const folders = [join(GROUPS, 'cpu', String(name)), join(GROUPS, String(name))];
    expect(folders.some(existsSync)).toBe(true);
    child.kill('SIGKILL');
    await expect.poll(() => folders.some(existsSync)).toBe(false);
  });
});
