// `tallyhook sandbox` as it is typed: usage, the service, its file server, and what stands in for the dashboard.

import { execFile } from 'node:child_process';
import { readFile, stat } from 'node:fs/promises';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { runCommand, type RunningCommand, startCommand } from '../../support/cli.ts';
import { codeOf, visitor } from '../../support/dashboard.ts';
import { createFolder } from '../../support/folder.ts';
import { startProcess } from '../../support/replica.ts';
import { ask, clientOf, createJob, order, untilEnded } from '../../support/sandbox.ts';
import { SECRET } from '../../support/sender.ts';
import { startTestService } from '../../support/service.ts';
import { waitFor } from '../../support/waits.ts';

const run = (...args: string[]) => runCommand(['sandbox', ...args]);

type Said = Pick<RunningCommand, 'stdout' | 'stderr'>;

async function untilSaid(command: Said, pattern: RegExp): Promise<string> {
  return waitFor(
    () => {
      const [, found] = pattern.exec(command.stderr()) ?? [];
      if (found === undefined) throw new Error(`not said so far: ${command.stderr()}${command.stdout()}`);
      return found;
    },
    { timeout: 20_000, interval: 20 },
  );
}

/** Runs the printed line in a shell in `cwd`. */
async function paste(serving: Said, cwd: string): Promise<Record<string, unknown>> {
  const line = await untilSaid(serving, /^ {2}(curl [^]*?'\{.*\}')$/m);
  const { stdout } = await promisify(execFile)('/bin/sh', ['-c', line.replace(' -i ', ' -sS ')], { cwd });
  return JSON.parse(stdout) as Record<string, unknown>;
}

describe('usage', () => {
  test('--help says what there is, with exit code 0, on its own and after a command', async () => {
    for (const args of [['--help'], ['serve', '-h'], ['tokens', 'create', '--help']]) {
      const { code, stdout, stderr } = await run(...args);
      expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: '' });
      for (const word of [
        'serve',
        'files',
        'tokens create',
        'account set',
        '--allow-local',
        '--chaos-flood',
      ]) {
        expect(stdout).toContain(word);
      }
    }
  });

  test.for([
    [['now'], 'sandbox takes serve, files, tokens, account or dashboard, not "now"'],
    [['serve', 'now'], 'unexpected argument "now"'],
    [['--colour'], '--colour'],
    [['--port', '70000'], '--port takes a whole number from 0 to 65535'],
    [['--engine', 'best'], '--engine takes one of auto, ffmpeg, simulated'],
    [['--max-jobs', '0'], '--max-jobs takes a whole number from 1'],
    [['--chaos-tamper', '2'], '--chaos-tamper takes a number from 0 to 1'],
    [['--chaos-duplicates', '-1'], '--chaos-duplicates'],
    [['--retry-factor', '0.5'], '--retry-factor takes a number from 1'],
    [['--log-level', 'loud'], '--log-level takes one of debug'],
    [['tokens'], 'sandbox tokens takes create, list or revoke'],
    [['tokens', 'make'], 'unexpected argument "make"'],
    [['tokens', 'create'], '--name takes 1 to 100'],
    [['tokens', 'create', '--name', 'x', '--scopes', 'jobs:read,all'], 'not "all"'],
    [['tokens', 'create', '--name', 'x', '--expires', 'soon'], '--expires takes a time in ISO 8601'],
    [['tokens', 'create', '--name', 'x', '--expires', '2020-01-01'], 'still to come'],
    [['tokens', 'create', '--name', 'x', '--expires', '2099-02-31'], '--expires takes a time in ISO 8601'],
    [['tokens', 'create', '--name', 'x', '--expires', '2099-13-01'], '--expires takes a time in ISO 8601'],
    [['tokens', 'list', '--data='], '--data takes a file'],
    [['serve', '--data', '.'], '--data takes a file'],
    [['tokens', 'list', '--data', ':memory:'], 'memory is not shared'],
    [['tokens', 'revoke'], 'takes the id of a token'],
    [['account'], 'sandbox account takes show or set'],
    [['account', 'set', '--tier', 'gold'], '--tier takes one of free, basic, pro, enterprise'],
    [['account', 'set', '--webhook-url', 'ftp://x'], '--webhook-url must be'],
    [['account', 'set', '--events', 'completed,started'], 'not "started"'],
    [['account', 'set', '--attempts', '21'], '--attempts takes a whole number from 1 to 20'],
    [['account', 'set', '--retry-first-ms', '0'], '--retry-first-ms takes a whole number from 1 to 86400000'],
    [['account', 'set', '--retry-factor', '11'], '--retry-factor takes a number from 1 to 10'],
    [['account', 'set', '--timeout-ms', '10001'], '--timeout-ms takes a whole number from 100 to 10000'],
    [['account', 'set', '--new-secret', '--secret-file', 'x'], 'exclude each other'],
    [['serve', '--receiver', 'relay'], '--receiver must be an absolute'],
    [['dashboard', 'now'], 'unexpected argument "now"'],
    [['dashboard', '--data', ':memory:'], 'memory is not shared'],
  ] as const)('%j is wrong usage, and a line says what', async ([args, words]) => {
    const { code, stdout, stderr } = await run(...args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(words);
  });

  test('wrong usage is exit code 2', async () => {
    const { code, stdout, stderr } = await run('--engine', 'best');
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toBe('--engine takes one of auto, ffmpeg, simulated\nTry "tallyhook sandbox --help".\n');
  });
});

describe('tokens and account', () => {
  test('a token is made, listed without its value, works, and is revoked beside a running sandbox', async () => {
    await using folder = await createFolder();
    const data = ['--data', folder.path('sandbox.db')];
    await using serving = startCommand(['sandbox', '--port', '0', '--engine', 'simulated', ...data]);
    const url = await untilSaid(serving, /base_url\s+(\S+)/);

    const made = await run(
      'tokens',
      'create',
      '--name',
      'of a test',
      '--test',
      '--scopes',
      'jobs:read',
      ...data,
    );
    expect(made).toMatchObject({ code: 0, stdout: expect.stringMatching(/^cvs_test_[\w-]{43}\n$/) });
    expect(made.stderr).toContain('shown only this once');
    const token = made.stdout.trim();
    expect(await ask(url, 'GET', '/me', { token })).toMatchObject({
      status: 200,
      body: { name: 'default', environment: 'test', token: { name: 'of a test', scopes: ['jobs:read'] } },
    });

    const listed = await run('tokens', 'list', ...data);
    const tokens = listed.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(tokens.map(({ name, state }) => ({ name, state }))).toEqual(
      expect.arrayContaining([
        { name: 'of a test', state: 'valid' },
        { name: 'first token', state: 'valid' },
      ]),
    );
    expect(listed.stdout + listed.stderr).not.toContain(token);
    const id = String(tokens.find(({ name }) => name === 'of a test')?.['id']);
    expect(await run('tokens', 'revoke', id, ...data)).toMatchObject({ code: 0 });
    expect(await ask(url, 'GET', '/me', { token })).toMatchObject({ status: 401 });
    expect(await run('tokens', 'revoke', id, ...data)).toMatchObject({ code: 1 });
  });

  test('an account is shown without its secret, changed, and its secret given out when asked for by name', async () => {
    await using folder = await createFolder();
    const data = ['--data', folder.path('sandbox.db')];
    const secret = (await run('account', 'show', '--secret', ...data)).stdout.trim();
    expect(secret).toMatch(/^[\w-]{43}$/);
    const settings = [
      '--tier',
      'free',
      '--webhook-url',
      'https://relay.example.com/webhooks',
      '--events',
      'completed,failed',
      '--attempts',
      '3',
      '--retry-first-ms',
      '250',
      '--retry-factor',
      '1.5',
      '--timeout-ms',
      '2000',
    ];
    const changed = await run('account', 'set', ...settings, ...data);
    expect(changed).toMatchObject({ code: 0, stderr: '' });
    const shown = await run('account', 'show', ...data);
    expect(JSON.parse(shown.stdout)).toEqual({
      account_id: expect.stringMatching(/^acct_/),
      name: 'default',
      tier: 'free',
      webhook_url: 'https://relay.example.com/webhooks',
      events: ['completed', 'failed'],
      attempts: 3,
      retry_first_ms: 250,
      retry_factor: 1.5,
      retry_max_ms: null,
      timeout_ms: 2_000,
      created_at: expect.any(String),
    });
    expect(shown.stdout).not.toContain(secret);

    const cleared = await run(
      'account',
      'set',
      '--webhook-url',
      'none',
      '--events',
      'none',
      '--timeout-ms',
      'default',
      '--new-secret',
      ...data,
    );
    expect(JSON.parse(cleared.stdout)).toMatchObject({
      webhook_url: null,
      events: [],
      tier: 'free',
      retry_first_ms: 250,
      timeout_ms: null,
    });
    expect((await run('account', 'show', '--secret', ...data)).stdout.trim()).not.toBe(secret);

    const file = await folder.write('secret', 'a-signing-secret-from-a-file\n');
    expect(await run('account', 'set', '--secret-file', file, ...data)).toMatchObject({ code: 0 });
    expect((await run('account', 'show', '--secret', ...data)).stdout).toBe('a-signing-secret-from-a-file\n');
    const short = await folder.write('short', 'short');
    expect(await run('account', 'set', '--secret-file', short, ...data)).toMatchObject({ code: 2 });
  });

  test('accounts are told apart by their names', async () => {
    await using folder = await createFolder();
    const data = ['--data', folder.path('sandbox.db')];
    const show = async (name: string) => (await run('account', 'show', '--account', name, ...data)).stdout;
    const one = JSON.parse(await show('one')) as Record<string, unknown>;
    const two = JSON.parse(await show('two')) as Record<string, unknown>;
    expect(one['account_id']).not.toBe(two['account_id']);
    expect(JSON.parse(await show('one'))).toEqual(one);
  });
});

describe('dashboard', () => {
  test('prints an address of the running sandbox that signs in once; what serve prints to a file signs nobody in', async () => {
    await using folder = await createFolder();
    const data = ['--data', folder.path('sandbox.db')];
    const none = await run('dashboard', ...data);
    expect(none).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining('no sandbox runs from'),
    });

    await using serving = startCommand(['sandbox', '--port', '0', '--engine', 'simulated', ...data]);
    const url = await untilSaid(serving, /dashboard\s+(http\S+)/);
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/dashboard$/);
    expect((await fetch(url)).url).toBe(`${url}/sign-in`);
    await untilSaid(serving, /(to sign in: node_modules\/\.bin\/tallyhook sandbox dashboard)/);

    const printed = await run('dashboard', ...data);
    expect(printed).toMatchObject({
      code: 0,
      stderr: 'signs in to the account default once, within ten minutes:\n',
    });
    const address = new URL(printed.stdout.trim());
    expect(`${address.origin}${address.pathname}`).toBe(`${url}/sign-in`);
    const visiting = visitor({ dashboardUrl: url });
    expect(await visiting.post('/sign-in', { code: codeOf(address.href) })).toMatchObject({ status: 303 });
    expect(await visiting.get('')).toMatchObject({
      status: 200,
      text: expect.stringContaining('<bdi>default</bdi>'),
    });
    expect(serving.stderr() + serving.stdout()).not.toContain(codeOf(address.href));

    serving.signal('SIGTERM');
    await serving.exited;
    expect(
      await visitor({ dashboardUrl: url })
        .get('/sign-in')
        .catch(() => 'gone'),
    ).toBe('gone');
    expect(await run('dashboard', ...data)).toMatchObject({ code: 2 });
  });
});

describe('serve', () => {
  test('prints a first token and a line that creates a job, runs it with its own files, and ends with 0', async () => {
    await using folder = await createFolder();
    await using serving = startProcess([
      'sandbox',
      '--data=:memory:',
      '--port=0',
      '--allow-local',
      '--engine=simulated',
      '--files-port=0',
      `--files=${folder.path('files')}`,
    ]);
    const url = await untilSaid(serving, /base_url\s+(\S+)/);
    const token = await untilSaid(serving, /token\s+(cvs_live_\S+)/);
    const example = await untilSaid(serving, /-d '(\{.*\})'/);
    const client = clientOf(url, token);
    const { job_id: jobId } = await createJob(client, JSON.parse(example) as Record<string, unknown>);
    expect(await untilEnded(client, jobId, 20_000)).toMatchObject({ status: 'completed' });
    expect(serving.stdout()).toContain('nothing is really converted');
    expect(serving.stdout()).not.toContain(token);
    expect(serving.stderr()).not.toContain('ExperimentalWarning');

    serving.child.kill('SIGTERM');
    expect(await serving.exited).toEqual({ code: 0, signal: null });
  });

  test('keeps the token of its line in a file for its owner, prints no value, and uses it at the next start', async () => {
    await using folder = await createFolder();
    const data = ['--data', folder.path('sandbox.db')];
    await run('tokens', 'create', '--name', 'made before', ...data);
    const tokens: string[] = [];
    for (let start = 0; start < 2; start++) {
      await using serving = startCommand(['sandbox', '--port', '0', '--engine', 'simulated', ...data]);
      const url = await untilSaid(serving, /base_url\s+(\S+)/);
      const file = await untilSaid(serving, /Bearer \$\(cat (\S+)\)/);
      expect(serving.stderr() + serving.stdout()).not.toContain('cvs_');
      expect((await stat(file)).mode & 0o777).toBe(0o600);
      const token = (await readFile(file, 'utf8')).trim();
      expect(await ask(url, 'GET', '/me', { token })).toMatchObject({ status: 200 });
      tokens.push(token);
    }
    expect(tokens[1]).toBe(tokens[0]);

    await folder.write('sandbox-token', 'cvs_live_of-another-sandbox');
    await using serving = startCommand(['sandbox', '--port', '0', '--engine', 'simulated', ...data]);
    await untilSaid(serving, /(Bearer )/);
    expect(await readFile(folder.path('sandbox-token'), 'utf8')).toMatch(/^cvs_live_[\w-]{43}\n$/);
  });

  test('a data file in use is 78, a port in use is 1, and both are said in a line', async () => {
    await using folder = await createFolder();
    const data = folder.path('sandbox.db');
    await using serving = startCommand(['sandbox', '--port', '0', '--engine', 'simulated', '--data', data]);
    const url = new URL(await untilSaid(serving, /base_url\s+(\S+)/));
    const second = await run('--port', '0', '--engine', 'simulated', '--data', data);
    expect(second).toMatchObject({ code: 78, stderr: expect.stringContaining('--data is in use') });
    const third = await run('--port', url.port, '--engine', 'simulated', '--data', ':memory:');
    expect(third).toMatchObject({ code: 1, stderr: expect.stringContaining('EADDRINUSE') });
  });

  test('its log is JSON lines', async () => {
    await using serving = startCommand([
      'sandbox',
      '--port',
      '0',
      '--engine',
      'simulated',
      '--data',
      ':memory:',
    ]);
    const url = await untilSaid(serving, /base_url\s+(\S+)/);
    await ask(url, 'GET', '/me');
    await waitFor(() => expect(serving.stdout()).toContain('"request"'));
    for (const line of serving.stdout().trim().split('\n')) expect(() => JSON.parse(line)).not.toThrow();
  });
});

describe('without --data, in the folder of a local run', () => {
  test('two run side by side, each with ports and data of its own, and the line that each prints works', async () => {
    await using folder = await createFolder();
    const cwd = folder.path('.');
    const env = { SIGNING_SECRETS: SECRET, PORT: '1' }; // no relay answers there
    const start = () => startProcess(['sandbox', '--engine', 'simulated'], { env, cwd });
    await using first = start();
    const urls = [await untilSaid(first, /base_url\s+(\S+)/)];
    await using second = start();
    urls.push(await untilSaid(second, /base_url\s+(\S+)/));

    expect(urls[1]).not.toBe(urls[0]);
    expect(await untilSaid(first, /data\s+(\S+)/)).toBe('.local/sandbox.db');
    expect(await untilSaid(second, /data\s+(\S+)/)).toBe('.local/sandbox-2.db');
    for (const [index, serving] of [first, second].entries()) {
      expect(serving.stderr()).toContain('to no relay: none runs here');
      const { job_id: jobId } = await paste(serving, cwd);
      const token = (await readFile(folder.path(`.local/sandbox${['', '-2'][index]}-token`), 'utf8')).trim();
      const client = clientOf(String(urls[index]), token);
      expect(await untilEnded(client, String(jobId), 20_000)).toMatchObject({ status: 'completed' });
      // Only its own files and the relay: everything else is as without --allow-local.
      const elsewhere = await client.call('POST', '/conversion_jobs', { body: order() });
      expect(elsewhere.status).toBe(422);
    }
    expect(second.stderr()).toMatch(/port \d+ is in use: a free one is taken/);
  });

  test('beside a relay it signs with the relay’s secret, and the job of its line is reported there', async () => {
    await using folder = await createFolder();
    await using relay = await startTestService();
    const env = {
      SIGNING_SECRETS: `${SECRET},an-old-secret-of-enough-bytes`,
      PORT: String(relay.service.port),
    };
    const cwd = folder.path('.');
    await using serving = startProcess(['sandbox', '--engine', 'simulated'], { env, cwd });

    const { job_id: jobId } = await paste(serving, cwd);
    expect(serving.stderr()).toContain(`to ${relay.webhooks}, signed with the secret of that relay`);
    await waitFor(
      async () => {
        const rows = await relay.database.query<{ outcome: string }>('select outcome from deliveries');
        const ends = await relay.database.query(
          `select from events where job_id = '${String(jobId)}' and status = 'completed'`,
        );
        expect(ends).toHaveLength(1);
        expect(new Set(rows.map(({ outcome }) => outcome))).toEqual(new Set(['accepted']));
      },
      { timeout: 20_000, interval: 100 },
    );
    expect(serving.stderr() + serving.stdout()).not.toContain(SECRET);
  });

  test('a port that was given and is in use is an error, and no other one is taken', async () => {
    await using folder = await createFolder();
    await using serving = startProcess(['sandbox', 'files', '--port', '0'], { cwd: folder.path('.') });
    const { port } = new URL(await untilSaid(serving, /Files\S*\s+(\S+)/));
    await using second = startProcess(['sandbox', '--files-port', port], { cwd: folder.path('.') });
    expect(await second.exited).toMatchObject({ code: 1 });
    expect(second.stderr()).toContain('EADDRINUSE');
  });
});

describe('files', () => {
  test('serves a clip to convert and takes an output', async () => {
    await using folder = await createFolder();
    await using serving = startCommand(['sandbox', 'files', '--port', '0', '--files', folder.path('files')]);
    const clip = await untilSaid(serving, /Files\S*\s+(\S+)/);
    const response = await fetch(clip);
    expect({ status: response.status, type: response.headers.get('content-type') }).toEqual({
      status: 200,
      type: 'video/mp4',
    });
    expect((await response.arrayBuffer()).byteLength).toBeGreaterThan(1_000);
    const put = await fetch(new URL('/output.webm', clip), { method: 'PUT', body: 'an output' });
    expect(put.status).toBe(201);
    expect(await readFile(folder.path('files/output.webm'), 'utf8')).toBe('an output');
    serving.signal('SIGINT');
    expect(await serving.exited).toBe(0);
  });
});
