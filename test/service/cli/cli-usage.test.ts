// Whom the command line asks, with which token, and what it says when that does not work.

import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { cliOf, cliWith, runCommand } from '../../support/cli.ts';
import { copyProgram } from '../../support/clone.ts';
import { createFolder } from '../../support/folder.ts';
import { newToken } from '../../support/operators.ts';
import { startReceiver } from '../../support/receiver.ts';
import { INHERITED, runProcess, startProcess } from '../../support/replica.ts';
import { completed, deliver, newJobId } from '../../support/sender.ts';
import { startTestService } from '../../support/service.ts';

const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));
const NOUNS = [
  'jobs',
  'deliveries',
  'events',
  'publications',
  'quarantine',
  'outbox',
  'replay',
  'replays',
  'stats',
  'sources',
  'destinations',
  'export',
  'live',
  'forward',
  'log',
];

test.for(NOUNS)('%s --help says what it takes, without a token', async (noun) => {
  const { code, stdout, stderr } = await runCommand([noun, '--help']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain(`\n  ${noun}`);
});

test.for([
  [['jobs'], 'jobs takes list, show'],
  [['jobs', 'find'], 'jobs takes list, show, not "find"'],
  [['jobs', 'show'], 'jobs show takes a source and a job'],
  [['jobs', 'list', 'job_1'], 'unexpected argument "job_1"'],
  [['jobs', 'list', '--colour'], '--colour'],
  [
    ['jobs', 'list', '--state', 'stuck', '--stuck-after', '1s'],
    '--stuck-after takes a time from 60s to 365d',
  ],
  [['jobs', 'list', '--stuck-after', 'long'], '--stuck-after takes a time such as'],
  [['deliveries', 'list', '--from', 'yesterday'], '--from takes 2026-01-31T12:00:00Z'],
  [['deliveries', 'list', '--limit', '0'], '--limit takes a whole number from 1'],
  [['deliveries', 'list', '--limit', '5', '--all'], 'exclude each other'],
  [['deliveries', 'show'], 'the id of a delivery is missing'],
  [['quarantine', 'release'], 'the id of a delivery, or --all, is missing'],
  [['quarantine', 'release', '--source', 'team-a'], 'filters go with --all'],
  [['quarantine', 'release', 'x', '--all'], 'exclude each other'],
  [['outbox', '--state', 'lost'], '--state takes pending, returned or parked'],
  [['outbox', 'retry'], 'what to retry'],
  [['outbox', 'retry', 'default:job_1:failed', '--source', 'x'], '--source goes with'],
  [['outbox', 'retry', 'returned', '--state', 'parked'], 'only --source goes with "returned"'],
  [['outbox', 'retry', '7', '--all', '--state', 'parked'], 'ids and --all exclude each other'],
  [['outbox', 'retry', '--all'], '--all goes with --state, which takes returned or parked'],
  [['outbox', 'discard', '--all', '--state', 'pending'], '--all goes with --state'],
  [['outbox', 'discard'], 'what to discard'],
  [['outbox', 'discard', '7', '--reason', 'x'], 'filters go with --all'],
  [['outbox', 'discard', '7', '--dry-run'], '--dry-run goes with --all'],
  [['outbox', 'groups', '--by', 'job'], '--by takes one of reason, queue, source'],
  [['quarantine', 'groups', '--by', 'queue'], '--by takes one of reason, source'],
  [['quarantine', 'release', 'x', '--dry-run'], '--dry-run goes with --all'],
  [['replay', '--yes'], 'replay takes ids of events, or filters'],
  [['replay', 'default:job_1:failed', '--source', 'team-a', '--yes'], 'one of the two'],
  [['replay', 'default:job_1:failed', '--yes', '--rate', '0'], '--rate takes a whole number from 1 to 1000'],
  [['replay', 'default:job_1:failed'], 'say --yes, or --dry-run'],
  [['replays', 'stop', 'x'], 'replays takes list, show, watch, pause, resume, cancel'],
  [['export'], 'export takes one of jobs'],
  [['export', '--format', 'csv'], '--format'],
  [['export', 'everything'], 'export takes one of jobs'],
  [['export', 'jobs', '--format', 'xml'], '--format takes one of ndjson, csv'],
  [['export', 'jobs', '--outcome', 'accepted'], '--outcome'],
  [['stats', '--step', '30s'], '--step takes whole minutes, from 1m to 366d'],
  [['stats', '--step', '90s'], '--step takes whole minutes, from 1m to 366d'],
  [['quarantine', 'discard', '--all'], '--note TEXT is missing: say why you discard them'],
  [['quarantine', 'discard', '--all', '--note', ' ', '--yes'], '--note TEXT is empty: say why'],
  [['stats', '--waiting', '--total'], '--waiting is of all sources and of steps'],
  [['stats', '--step', '1w'], '--step takes a time such as'],
] as const)('%j is wrong usage: exit code 2, and a line that says what', async ([args, words]) => {
  // The address of nobody: wrong usage is known without asking.
  const cli = cliWith({ TALLYHOOK_URL: 'http://127.0.0.1:1', TALLYHOOK_TOKEN: 'thk_test_x' });
  const { code, stdout, stderr } = await cli.run(...args);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain(words);
  expect(stderr).toContain(`Try "tallyhook ${args[0]} --help".`);
});

describe('the address and the token', () => {
  test('without a token it is exit code 78, and a sentence says how to get one', async () => {
    // With an address of its own, so that a local run of this clone does not give its token.
    const env = { TALLYHOOK_URL: 'http://127.0.0.1:8081' };
    const { code, stdout, stderr } = await runCommand(['jobs', 'list'], { env });
    expect({ code, stdout }).toEqual({ code: 78, stdout: '' });
    expect(stderr).toContain('TALLYHOOK_TOKEN must be set for 127.0.0.1:8081');
    expect(stderr).toContain('tallyhook tokens create');
  });

  test.for([
    ['TALLYHOOK_URL', { TALLYHOOK_URL: 'ftp://x', TALLYHOOK_TOKEN: 'thk_test_x' }],
    ['TALLYHOOK_TOKEN', { TALLYHOOK_TOKEN: 'two words' }],
    ['TALLYHOOK_TOKEN_FILE', { TALLYHOOK_TOKEN_FILE: '/nowhere/token' }],
  ] as const)('a %s that cannot be used is exit code 78', async ([name, env]) => {
    const { code, stderr } = await runCommand(['jobs', 'list'], { env });
    expect(code).toBe(78);
    expect(stderr).toContain(name);
    expect(stderr).not.toContain('two words');
  });

  test.for([
    { TALLYHOOK_URL: 'ftp://x' },
    { TALLYHOOK_URL: 'ftp://x', TALLYHOOK_TOKEN: 'two words' },
    { TALLYHOOK_URL: 'ftp://x', TALLYHOOK_TOKEN_FILE: '/nowhere/token' },
  ])('an address and a token that cannot be used are told at once', async (env) => {
    const { code, stderr } = await runCommand(['jobs', 'list'], { env });
    expect(code).toBe(78);
    expect(stderr).toContain('TALLYHOOK_URL cannot be used');
    expect(stderr).toContain(env.TALLYHOOK_TOKEN_FILE ? 'TALLYHOOK_TOKEN_FILE cannot' : 'TALLYHOOK_TOKEN ');
  });

  test('a service that is not there is named, with exit code 1', async () => {
    const cli = cliWith({ TALLYHOOK_URL: 'http://127.0.0.1:1', TALLYHOOK_TOKEN: 'thk_test_pLaNtEd' });
    const { code, stdout, stderr } = await cli.run('jobs', 'list');
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain('unreachable: there is no service at http://127.0.0.1:1');
    expect(stderr).not.toContain('pLaNtEd');
  });

  test('a token that is invalid, or whose role does not allow the command, is said with what to do: exit code 1', async () => {
    await using relay = await startTestService();
    const wrong = cliWith({ TALLYHOOK_URL: relay.operators, TALLYHOOK_TOKEN: 'thk_test_pLaNtEd' });
    const viewer = await cliOf(relay, { role: 'viewer' });

    const unauthorized = await wrong.run('jobs', 'list');
    expect(unauthorized).toMatchObject({ code: 1, stdout: '' });
    expect(unauthorized.stderr).toMatch(
      /^unauthorized: invalid or expired API token\nCheck that TALLYHOOK_TOKEN is complete/,
    );
    expect(unauthorized.stderr).not.toContain('pLaNtEd');
    const forbidden = await viewer.run('log');
    expect(forbidden).toMatchObject({ code: 1, stdout: '' });
    expect(forbidden.stderr).toMatch(
      /^forbidden: .+\nYour token's role or source limit does not allow this\. /,
    );
  });

  test('what the API does not take is wrong usage, too', async () => {
    await using relay = await startTestService();
    const cli = await cliOf(relay);
    const { code, stderr } = await cli.run('deliveries', 'list', '--outcome', 'lost');
    expect(code).toBe(2);
    expect(stderr).toMatch(/^invalid_request: .*outcome/);
  });

  test('they come from a local run where the environment is silent, and its token goes nowhere else', async () => {
    await using relay = await startTestService();
    await using elsewhere = await startReceiver();
    await using folder = await createFolder();
    await copyProgram(folder.path('.'));
    const { value } = await newToken(relay.database, {});
    const port = new URL(relay.operators).port;
    await writeFile(folder.path('.local/env'), `OPERATOR_PORT=${port}\nTALLYHOOK_TOKEN=${value}\n`);
    const main = folder.path('src/main.ts');
    await deliver(relay.webhooks, completed(newJobId()));

    const local = await runProcess(['jobs', 'list'], { main });
    expect(local).toMatchObject({ code: 0, stderr: '' });
    expect(local.stdout).toContain('"state":"completed"');

    const env = { TALLYHOOK_URL: `http://127.0.0.1:${elsewhere.port}` };
    expect(await runProcess(['jobs', 'list'], { main, env })).toMatchObject({ code: 78 });
    expect(elsewhere.received).toEqual([]);
  });
});

test('a reader that leaves the pipe, as head does, ends it quietly and with 0', async () => {
  await using relay = await startTestService();
  await Promise.all(Array.from({ length: 300 }, () => deliver(relay.webhooks, completed(newJobId()))));
  const cli = await cliOf(relay);
  await using command = startProcess(['deliveries', 'list', '--all'], { env: cli.env });
  command.child.stdout?.once('data', () => command.child.stdout?.destroy());
  await expect.poll(() => command.child.exitCode).toBe(0);
  expect(command.stderr()).toBe('');
});

test.skipIf(!existsSync('/dev/full'))(
  'output that cannot be written is told in a line, and is a failure',
  async () => {
    const { status, stderr } = spawnSync(
      'sh',
      ['-c', '"$0" "$1" --help > /dev/full', process.execPath, MAIN],
      {
        env: INHERITED,
        encoding: 'utf8',
      },
    );

    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: expect.stringMatching(/^standard output: .*\n$/),
    });
  },
);
