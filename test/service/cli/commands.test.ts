import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { findFreePort } from '../../../scripts/services/ports.ts';
import { withLocalRun } from '../../../src/terminal/environment.ts';
import { IS_SHORT_RUN } from '../../only-in-all.ts';
import { amqpUrl, listen, newExchange } from '../../support/bus.ts';
import { runCommand, startCommand } from '../../support/cli.ts';
import { copyProgram } from '../../support/clone.ts';
import { createTestDatabase } from '../../support/database.ts';
import { deliveries, events } from '../../support/ledger.ts';
import { runProcess, startProcess } from '../../support/replica.ts';
import { completed, deliver, failed, newJobId, progress, SECRET } from '../../support/sender.ts';
import { startTestService } from '../../support/service.ts';
import { shareTestService } from '../../support/shared-service.ts';
import { waitFor } from '../../support/waits.ts';

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tallyhook-test-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

const COMMANDS = [
  ['serve', 'migrate', 'tokens', 'healthcheck'],
  [
    'jobs',
    'deliveries',
    'events',
    'publications',
    'stats',
    'destinations',
    'sources',
    'console',
    'live',
    'export',
    'log',
    'sessions',
  ],
  ['outbox', 'quarantine', 'replay', 'replays'],
  ['send', 'verify', 'doctor', 'forward', 'tail', 'sandbox'],
].flat();

describe('usage', () => {
  test('--help says what there is, with exit code 0, on its own and after a command', async () => {
    for (const args of [['--help'], ['-h'], ['help']]) {
      const { code, stdout, stderr } = await runCommand(args);
      expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: '' });
      for (const command of COMMANDS) expect(stdout).toMatch(new RegExp(`^ {4}${command} `, 'm'));
    }
    const { stdout } = await runCommand(['send', '--help']);
    for (const word of ['send [KIND]', '--tamper']) expect(stdout).toContain(word);
  });

  test('--version says the version of the package', async () => {
    const { code, stdout } = await runCommand(['--version']);
    expect({ code, stdout }).toEqual({ code: 0, stdout: '0.1.0\n' });
  });

  test.for([
    [[], 'Usage: tallyhook'],
    [['relay'], 'there is no command "relay"'],
    [['send', 'finished'], 'send takes one of completed, failed, progress'],
    [['send', 'completed', 'failed'], 'unexpected argument "failed"'],
    [['send', '--colour'], '--colour'],
    [['send', '--percent', '101'], '--percent takes a whole number from 0 to 100'],
    [['send', '--percent', '20'], '--percent is for progress and failed'],
    [['send', '--repeat', '-1'], '--repeat has no value. Write a value that begins with "-" as --repeat=-…'],
    [['send', '--repeat=-1'], '--repeat takes a whole number from 1'],
    [['send', '--source', '../x'], '"../x" cannot be a source'],
    [['send', '--repeat', '0'], '--repeat takes a whole number from 1'],
    [['send', '--repeat', 'x'], '--repeat takes a whole number from 1'],
    [['send', '--job'], '--job'],
    [['send', '--file', 'body.json', '--now'], '--file sends its bytes as they are'],
    [['tail', '--types', 'completed,finished'], 'not "finished"'],
    [['tail', '--source', 'Bad Name!'], '--source takes the name of a source'],
    [['tail', '--queue', ''], '--queue takes the name of a queue'],
    [['outbox', '--state', 'lost'], '--state takes pending, returned or parked'],
    [['serve', '--port', '1'], '--port'],
    [['migrate', '--down'], '--down'],
  ] as const)('%j is wrong usage: exit code 2, and a line that says what', async ([args, words]) => {
    const { code, stdout, stderr } = await runCommand(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(words);
    expect(stderr).not.toContain('at file:');
  });

  test.for([
    ['serve', 'now'],
    ['migrate', 'down'],
    ['tail', 'failed'],
    ['outbox', 'lost'],
  ])('a word that %j does not know is wrong usage and is not passed over', async (args) => {
    const env = {
      DATABASE_URL: 'postgres://127.0.0.1:1/x',
      AMQP_URL: 'amqp://127.0.0.1:1',
      SIGNING_SECRETS: SECRET,
    };
    const { code, stderr } = await runCommand(args, { env });
    expect(code).toBe(2);
    expect(stderr).toContain(args[1]);
  });
});

/** Of `serve`. */
const envOf = ({ url }: { url: string }) => ({
  DATABASE_URL: url,
  AMQP_URL: amqpUrl(),
  SIGNING_SECRETS: SECRET,
  PORT: '0',
  OPERATOR_PORT: '0',
});

describe('configuration', () => {
  test('every fault of the environment is listed at once, with exit code 78 and without a value', async () => {
    const folder = await newFolder();
    const { code, stdout, stderr } = await runCommand(['serve'], {
      env: {
        DATABASE_URL: 'mysql://someone:database-password@db/x',
        AMQP_URL_FILE: join(folder, 'missing-file'),
        SIGNING_SECRETS: 'short-secret,another-secret-of-enough-bytes',
        PORT: 'eighty',
        OPERATOR_PORT: '70000',
        ANSWER_DEADLINE_MS: '9600',
        LOG_LEVEL: 'loud',
        MIGRATE_ON_START: 'maybe',
      },
    });

    expect({ code, stdout }).toEqual({ code: 78, stdout: '' });
    for (const name of [
      'DATABASE_URL',
      'AMQP_URL_FILE',
      'SIGNING_SECRETS entry 1',
      'PORT',
      'OPERATOR_PORT',
      'ANSWER_DEADLINE_MS',
      'LOG_LEVEL',
      'MIGRATE_ON_START',
    ]) {
      expect(stderr).toContain(`- ${name}`);
    }
    for (const value of ['database-password', 'short-secret', 'another-secret', 'someone', 'missing-file']) {
      expect(stderr).not.toContain(value);
    }
  });

  test('an empty environment names what must be set', async () => {
    const { code, stderr } = await runCommand(['serve']);
    expect(code).toBe(78);
    for (const name of ['DATABASE_URL', 'AMQP_URL', 'SIGNING_SECRETS']) {
      expect(stderr).toContain(`${name} must be set`);
    }
  });

  describe('a schema that does not fit ends with 78', () => {
    test('one that is missing: serve says what to run', async () => {
      await using database = await createTestDatabase({ empty: true });
      const { code, stderr } = await runProcess(['serve'], { env: envOf(database) });
      expect(code).toBe(78);
      expect(stderr).toContain('tallyhook migrate');
    });

    test('one that is newer: serve and migrate name it', async () => {
      await using database = await createTestDatabase();
      await database.query(`insert into kysely_migration values ('9999-of-tomorrow', now()::text)`);
      const env = envOf(database);
      for (const newer of [await runProcess(['serve'], { env }), await runCommand(['migrate'], { env })]) {
        expect(newer.code).toBe(78);
        expect(newer.stderr).toContain('9999-of-tomorrow');
      }
    });
  });
});

describe('migrate', () => {
  test('makes the schema, and does nothing the second time', async () => {
    await using database = await createTestDatabase({ empty: true });
    const env = { DATABASE_URL: database.url };

    const first = await runCommand(['migrate'], { env });
    const second = await runCommand(['migrate'], { env });

    expect(first).toMatchObject({ code: 0, stderr: '' });
    expect(first.stdout).toMatch(/^migrated: 0001-first-release, 0002-watch, 0003-clusters$/m);
    expect(second).toEqual({ code: 0, stdout: 'the schema is up to date\n', stderr: '' });
    expect(await database.query('select from events')).toEqual([]);
  });

  test('of an older program succeeds on a newer schema on which it may run, and says that it changes nothing', async () => {
    await using database = await createTestDatabase();
    await database.query(`insert into schema_requirements
      select '9999-of-tomorrow', max(name) from kysely_migration`);
    await database.query(`insert into kysely_migration values ('9999-of-tomorrow', now()::text)`);

    expect(await runCommand(['migrate'], { env: { DATABASE_URL: database.url } })).toEqual({
      code: 0,
      stdout: 'the schema has 9999-of-tomorrow, and this older program may run on it: nothing was changed\n',
      stderr: '',
    });
  });

  test('started several times at once, one makes the schema and all succeed', async () => {
    await using database = await createTestDatabase({ empty: true });
    const runs = await Promise.all(
      [1, 2, 3].map(() => runCommand(['migrate'], { env: { DATABASE_URL: database.url } })),
    );
    expect(runs.map(({ code, stderr }) => ({ code, stderr }))).toEqual(
      runs.map(() => ({ code: 0, stderr: '' })),
    );
    expect(runs.filter(({ stdout }) => stdout.startsWith('migrated'))).toHaveLength(1);
  });

  test('a Postgres that cannot be reached is exit code 1, and no password is printed', async () => {
    const { code, stdout, stderr } = await runCommand(['migrate'], {
      env: { DATABASE_URL: 'postgres://someone:database-password@127.0.0.1:1/x' },
    });
    expect(code).toBe(1);
    expect(stderr).toContain('ECONNREFUSED');
    expect(stdout + stderr).not.toContain('database-password');
  });
});

describe('send', () => {
  const shared = shareTestService();

  test('each kind is signed, accepted and published, with the job and percentage that were asked for', async () => {
    const exchange = newExchange();
    await using bus = await listen(exchange);
    await using relay = await startTestService({ exchange });
    const env = {
      SIGNING_SECRETS: `${SECRET},an-old-secret-of-enough-bytes`,
      PORT: String(relay.service.port),
    };
    const job = newJobId();

    const runs = [
      await runCommand(['send', 'progress', '--job', job, '--percent', '45'], { env }),
      await runCommand(['send', 'failed', '--job', job], { env }),
      await runCommand(['send', 'completed', '--job', job], { env }),
      await runCommand(['send', 'completed'], { env }),
    ];

    for (const { code, stdout, stderr } of runs) {
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(stdout).toMatch(/^202 accepted default:job_\w+:[\w:]+ \d+\.\d ms\n$/);
    }
    await bus.received(4);
    // The order is promised within a job alone.
    expect(bus.ids().filter((id) => id.startsWith(`default:${job}:`))).toEqual([
      `default:${job}:processing:45`,
      `default:${job}:failed`,
      `default:${job}:completed`,
    ]);
    expect(bus.messages.map(({ event }) => String(event['type'])).toSorted()).toEqual([
      'conversion.job.completed',
      'conversion.job.completed',
      'conversion.job.failed',
      'conversion.job.progress',
    ]);
  });

  test('--repeat sends the same again, and --tamper is refused with exit code 1', async () => {
    const relay = shared();
    const env = { SIGNING_SECRETS: SECRET };
    const job = newJobId();
    const url = ['--job', job, '--url', relay.webhooks];

    const repeated = await runCommand(['send', 'completed', '--repeat', '3', ...url], { env });
    const tampered = await runCommand(['send', 'completed', '--tamper', ...url], { env });

    expect(repeated.code).toBe(0);
    expect(repeated.stdout.split('\n').map((line) => line.split(' ').slice(0, 2).join(' '))).toEqual([
      '202 accepted',
      '200 duplicate',
      '200 duplicate',
      '',
    ]);
    expect(tampered.code).toBe(1);
    expect(tampered.stdout).toMatch(/^401 unauthorized/);
    expect(await events(relay.database, job)).toHaveLength(1);
  });

  test('--file sends those very bytes', async () => {
    const relay = shared();
    const file = join(await newFolder(), 'body.json');
    const job = newJobId();
    // A newline at the end and odd spacing: whoever parses and prints it again sends other bytes.
    const body = `{ "job_id":"${job}",  "status":"processing","progress_percentage": 7 }\n`;
    await writeFile(file, body);

    const { code } = await runCommand(['send', '--file', file, '--url', relay.webhooks], {
      env: { SIGNING_SECRETS: SECRET },
    });

    expect(code).toBe(0);
    const rows = await deliveries(relay.database, job);
    expect(rows.map(({ body: kept }) => kept?.toString())).toEqual([body]);
  });

  test('--source signs with the secret of SOURCES_FILE and sends to that source', async () => {
    const exchange = newExchange();
    await using bus = await listen(exchange);
    const file = join(await newFolder(), 'sources.json');
    await writeFile(
      file,
      JSON.stringify({ 'team-a': { secrets: ['a-secret-of-team-a-with-enough-bytes'] } }),
    );
    await using relay = await startTestService({ exchange, env: { SOURCES_FILE: file } });
    const env = { SOURCES_FILE: file, PORT: String(relay.service.port) };

    const sent = await runCommand(['send', 'failed', '--source', 'team-a'], { env });
    const unknown = await runCommand(['send', 'failed', '--source', 'team-b'], { env });

    expect(sent.code).toBe(0);
    expect(sent.stdout).toMatch(/^202 accepted team-a:/);
    await bus.received(1);
    expect(bus.messages[0]?.routingKey).toBe('job.failed.team-a');
    expect(unknown.code).toBe(2);
    expect(unknown.stderr).toContain('there is no source "team-b". There are: team-a.');
    expect(unknown.stderr).toContain(`Add it to ${file}`);
    expect(unknown.stderr).not.toContain('a-secret-of');
  });

  test('--source names the sources that there are: default too where it has a secret, and no key that is no name', async () => {
    const file = join(await newFolder(), 'sources.json');
    const strayed = 'A-Secret-In-The-Wrong-Place';
    await writeFile(file, JSON.stringify({ 'team-a': { secrets: [SECRET] }, [strayed]: {} }));

    const { stderr } = await runCommand(['send', '--source', 'team-b'], {
      env: { SOURCES_FILE: file, SIGNING_SECRETS: SECRET },
    });
    expect(stderr).toContain('There are: default, team-a.');
    expect(stderr).not.toContain(strayed);
    expect(stderr).not.toContain(SECRET);
  });

  test('without SIGNING_SECRETS the source default is looked for in SOURCES_FILE', async () => {
    const file = join(await newFolder(), 'sources.json');
    await writeFile(file, JSON.stringify({ default: { secrets: [SECRET, 'an-older-one-of-enough-bytes'] } }));
    const relay = shared();
    const env = { SOURCES_FILE: file };

    const sent = await runCommand(['send', '--url', relay.webhooks], { env });
    expect(sent.stdout).toMatch(/^202 accepted default:/);
  });

  test('the same kind, job and percentage is a duplicate whenever it is sent, and with --now a conflict', async () => {
    const relay = shared();
    const send = async (...args: string[]) => {
      const all = ['send', ...args, '--url', relay.webhooks];
      const { stdout } = await runCommand(all, { env: { SIGNING_SECRETS: SECRET } });
      return stdout.split(' ')[1];
    };
    const jobId = newJobId();
    const job = ['--job', jobId];

    for (const kind of ['completed', 'failed', 'progress']) {
      expect(await send(kind, ...job)).toBe('accepted');
      expect(await send(kind, ...job)).toBe('duplicate');
      expect(await send(kind, ...job, '--now')).toBe('conflict');
    }
    expect(await send('progress', ...job, '--percent', '51')).toBe('accepted');
    const [{ at } = { at: new Date(0) }] = await relay.database.query<{ at: Date }>(
      `select occurred_at as at from events where status = 'completed' and job_id = $1`,
      [jobId],
    );
    expect(at.toISOString()).toBe('2026-01-15T10:35:00.000Z');
  });

  test('no relay at the address, no secret, or a file that is not there: said plainly', async () => {
    const nowhere = ['--url', 'http://127.0.0.1:1/webhooks'];
    const env = { SIGNING_SECRETS: SECRET };

    const unanswered = await runCommand(['send', ...nowhere], { env });
    expect(unanswered.code).toBe(1);
    expect(unanswered.stderr).toContain('no answer from http://127.0.0.1:1/webhooks');

    const port = String(await findFreePort());
    const notRunning = await runCommand(['send', '--repeat', '2'], { env: { ...env, PORT: port } });
    expect(notRunning.code).toBe(1);
    expect(notRunning.stderr.split('Is "npm start" running?')).toHaveLength(2);
    const noBroker = await runCommand(['tail'], { env: { AMQP_URL: `amqp://127.0.0.1:${port}` } });
    expect(noBroker.code).toBe(1);
    expect(noBroker.stderr).toContain('Is "npm start" running?');

    const file = await runCommand(['send', '--file', '/nowhere/body.json', ...nowhere], { env });
    expect(file).toMatchObject({ code: 2, stdout: '' });
    expect(file.stderr).toContain('--file: there is no file ');

    const noFile = await runCommand(['send', ...nowhere], {
      env: { SIGNING_SECRETS_FILE: '/nowhere/secret' },
    });
    expect(noFile.code).toBe(2);
    expect(noFile.stderr).toContain('SIGNING_SECRETS_FILE cannot be read');
  });

  test('the secret can come from a file', async () => {
    const relay = shared();
    const file = join(await newFolder(), 'secret');
    await writeFile(file, `${SECRET}\n`);
    const { code } = await runCommand(['send', '--url', relay.webhooks], {
      env: { SIGNING_SECRETS_FILE: file },
    });
    expect(code).toBe(0);
  });
});

/** A message as a replay sends it, as far as tail looks at it. */
const copyOf = (kind: string, source: string) =>
  Buffer.from(
    JSON.stringify({
      id: `${source}:j:${kind}`,
      type: `conversion.job.${kind}`,
      source: `/sources/${source}`,
    }),
  );

describe('tail', () => {
  test('piped, it prints each event as one line: the CloudEvent, what cannot be seen escaped, and ends on SIGTERM with 0', async () => {
    const exchange = newExchange();
    const queue = `${exchange}.tail`;
    await using bus = await listen(exchange);
    await using relay = await startTestService({ exchange });
    onTestFinished(async () => {
      await using cleaner = await listen(exchange);
      await cleaner.channel.deleteQueue(queue);
    });
    // Its queue is there before it: what it keeps is printed when the subscriber comes.
    await bus.channel.assertQueue(queue, { durable: true });
    await bus.channel.bindQueue(queue, exchange, 'job.#');
    const job = newJobId();
    await deliver(relay.webhooks, progress(job, 45, { note: 'line one\nline two \u{1F600} \u2028' }));
    await deliver(relay.webhooks, completed(job, { output_size_bytes: 9_007_199_254_740_991 }));
    await bus.received(2);

    await using tail = startProcess(['tail', '--queue', queue], {
      env: { AMQP_URL: amqpUrl(), AMQP_EXCHANGE: exchange },
    });
    await expect.poll(() => tail.stdout().split('\n')).toHaveLength(3);
    await deliver(relay.webhooks, failed(job));
    await bus.received(3);
    await expect.poll(() => tail.stdout().split('\n')).toHaveLength(4);
    tail.child.kill('SIGTERM');

    expect(await tail.exited).toEqual({ code: 0, signal: null });
    expect(tail.stderr()).toBe(`listening on queue ${queue}\n`);
    expect(tail.stdout()).toBe(
      bus.messages.map(({ text }) => `${text.replaceAll('\u2028', '\\u2028')}\n`).join(''),
    );
  });

  test('--types and --source choose what it prints', async () => {
    const exchange = newExchange();
    const file = join(await newFolder(), 'sources.json');
    await writeFile(file, JSON.stringify({ 'team-a': { secrets: [SECRET] } }));
    await using bus = await listen(exchange);
    await using relay = await startTestService({ exchange, env: { SOURCES_FILE: file } });
    await using tail = startCommand(['tail', '--types', 'completed,failed', '--source', 'team-a'], {
      env: { AMQP_URL: amqpUrl(), AMQP_EXCHANGE: exchange },
    });
    const printed = () =>
      tail
        .stdout()
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => (JSON.parse(line) as { id: string }).id);
    // Its queue is its own and says nothing when it is bound: events come until the first is seen.
    await waitFor(
      async () => {
        await deliver(`${relay.webhooks}/team-a`, completed(newJobId()));
        expect(printed().length).toBeGreaterThan(0);
      },
      { timeout: 10_000, interval: 100 },
    );
    const job = newJobId();
    await deliver(relay.webhooks, completed(job));
    await deliver(`${relay.webhooks}/team-a`, progress(job, 5));
    await deliver(`${relay.webhooks}/team-a`, failed(job));
    await deliver(`${relay.webhooks}/team-a`, completed(job));

    await expect.poll(() => printed()).toContain(`team-a:${job}:completed`);

    expect(printed().filter((id) => id.includes(job))).toEqual([
      `team-a:${job}:failed`,
      `team-a:${job}:completed`,
    ]);
    expect(bus.messages.length).toBeGreaterThan(4);
  });

  test('a queue that exists is read as it is: whatever its arguments, no binding is added, and its consumers are named', async () => {
    const exchange = newExchange();
    const queue = `${exchange}.single`;
    await using bus = await listen(exchange);
    await using relay = await startTestService({ exchange });
    onTestFinished(async () => {
      await using cleaner = await listen(exchange);
      await cleaner.channel.deleteQueue(queue);
    });
    await bus.channel.assertQueue(queue, {
      durable: true,
      arguments: { 'x-single-active-consumer': true },
    });
    await bus.channel.bindQueue(queue, exchange, 'job.failed.*');
    const { consumerTag } = await bus.channel.consume(queue, () => {});
    const env = { AMQP_URL: amqpUrl(), AMQP_EXCHANGE: exchange };
    await using tail = startCommand(['tail', '--queue', queue], { env });
    await expect.poll(() => tail.stderr()).toContain('it has 1 other consumer, which');
    await bus.channel.cancel(consumerTag);

    const job = newJobId();
    await deliver(relay.webhooks, completed(job));
    await deliver(relay.webhooks, failed(newJobId()));
    await bus.received(2);

    await expect.poll(() => tail.stdout()).toContain('conversion.job.failed');
    expect(tail.stdout()).not.toContain(job);
  });

  test('--types and --source go by the event, so that copies of a replay to the queue are printed', async () => {
    const exchange = newExchange();
    const queue = `${exchange}.refilled`;
    await using bus = await listen(exchange);
    onTestFinished(async () => {
      await using cleaner = await listen(exchange);
      await cleaner.channel.deleteQueue(queue);
    });
    await bus.channel.assertQueue(queue, { durable: true });
    // As a replay to one queue publishes: over the default exchange, with the queue's name as the routing key.
    for (const [kind, source] of [
      ['completed', 'team-b'],
      ['progress', 'team-a'],
      ['completed', 'team-a'],
    ] as const)
      bus.channel.sendToQueue(queue, copyOf(kind, source));

    const options = ['--queue', queue, '--types', 'completed', '--source', 'team-a'];
    await using tail = startCommand(['tail', ...options], {
      env: { AMQP_URL: amqpUrl(), AMQP_EXCHANGE: exchange },
    });

    await expect.poll(() => tail.stdout()).toContain('team-a:j:completed');
    expect(tail.stdout().trimEnd().split('\n')).toHaveLength(1);
  });

  test('a reader that leaves the pipe, as head does, ends it', async () => {
    const exchange = newExchange();
    await using bus = await listen(exchange);
    await using relay = await startTestService({ exchange });
    await using tail = startProcess(['tail'], { env: { AMQP_URL: amqpUrl(), AMQP_EXCHANGE: exchange } });
    await waitFor(
      async () => {
        await deliver(relay.webhooks, completed(newJobId()));
        expect(tail.stdout()).not.toBe('');
      },
      { timeout: 10_000, interval: 100 },
    );
    tail.child.stdout?.destroy();
    await waitFor(
      async () => {
        await deliver(relay.webhooks, completed(newJobId()));
        expect(tail.child.exitCode).toBe(0);
      },
      { timeout: 10_000, interval: 100 },
    );
    expect(bus.messages.length).toBeGreaterThan(1);
    // Its queue is gone with it: nothing but the queue of `bus` is bound.
    await bus.channel.unbindQueue(bus.queue, exchange, 'job.#');
    const returned = vi.fn<() => void>();
    bus.channel.on('return', returned);
    bus.channel.publish(exchange, 'job.completed.default', Buffer.from('{}'), { mandatory: true });
    await expect.poll(() => returned).toHaveBeenCalledOnce();
  });

  test('without a broker it gives up with exit code 1, and prints no password', async () => {
    const unreachable = await runCommand(['tail'], {
      env: { AMQP_URL: 'amqp://someone:a-password@127.0.0.1:1' },
    });
    expect(unreachable.code).toBe(1);
    expect(unreachable.stderr).toContain('ECONNREFUSED');
    expect(unreachable.stderr).not.toContain('a-password');
  });
});

describe.skipIf(IS_SHORT_RUN)('the environment of a local run', () => {
  const shared = shareTestService();
  let root: string;
  let main: string;

  /** The program in a folder of its own: one for all tests, since Node compiles each copy anew. */
  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'tallyhook-test-'));
    main = join(root, 'src/main.ts');
    await copyProgram(root);
  });

  afterAll(() => rm(root, { recursive: true }));

  /** Where a local run leaves its file. */
  beforeEach(async () => {
    await rm(join(root, '.local'), { recursive: true });
    await mkdir(join(root, '.local'));
  });

  test('is read by commands where the environment is silent', async () => {
    const relay = shared();
    await writeFile(
      join(root, '.local/env'),
      `PORT=${relay.service.port}\nSIGNING_SECRETS=${SECRET}\nDATABASE_URL=${relay.database.url}\n`,
      { mode: 0o600 },
    );

    expect(await runProcess(['send'], { main })).toMatchObject({ code: 0 });
    expect(await runProcess(['migrate'], { main })).toMatchObject({
      code: 0,
      stdout: 'the schema is up to date\n',
    });
  });

  test('gives way to each variable that is set outside, and not to one that is empty', async () => {
    const relay = shared();
    await writeFile(join(root, '.local/env'), `PORT=1\nSIGNING_SECRETS=${SECRET}\n`);
    const PORT = String(relay.service.port);

    expect(await runProcess(['send'], { main, env: { PORT } })).toMatchObject({ code: 0 });
    expect(await runProcess(['send'], { main, env: { PORT, SIGNING_SECRETS: '' } })).toMatchObject({
      code: 0,
    });
    const wrong = await runProcess(['send'], {
      main,
      env: { PORT, SIGNING_SECRETS: 'some-other-secret-0123' },
    });
    expect(wrong).toMatchObject({ code: 1 });
    expect(wrong.stdout).toMatch(/^401/);
    expect(await runProcess(['send'], { main })).toMatchObject({ code: 1 });
  });

  test('does not meet a secret that comes from a file outside', async () => {
    const relay = shared();
    await writeFile(join(root, 'secret'), SECRET);
    await writeFile(
      join(root, '.local/env'),
      `PORT=${relay.service.port}\nSIGNING_SECRETS=a-wrong-secret-0123\n`,
    );

    expect(
      await runProcess(['send'], { main, env: { SIGNING_SECRETS_FILE: join(root, 'secret') } }),
    ).toMatchObject({ code: 0 });
  });

  test('gives its SIGNING_SECRETS to nobody who names another SOURCES_FILE', async () => {
    const relay = shared();
    const file = join(root, 'sources.json');
    await writeFile(file, JSON.stringify({ default: { secrets: [SECRET] } }));
    await writeFile(
      join(root, '.local/env'),
      'export SIGNING_SECRETS=a-wrong-secret-0123\nexport SOURCES_FILE=/nowhere\n',
    );

    const { stdout } = await runProcess(['send', '--url', relay.webhooks], {
      main,
      env: { SOURCES_FILE: file },
    });
    expect(stdout).toMatch(/^202 accepted/);
  });

  test('is not read by serve, which is configured from outside alone', async () => {
    await writeFile(join(root, '.local/env'), `SIGNING_SECRETS=${SECRET}\n`);
    const { code, stderr } = await runProcess(['serve'], { main });
    expect(code).toBe(78);
    expect(stderr).toContain('SIGNING_SECRETS must be set');
  });

  test('is nothing where there was no local run', async () => {
    expect(await runProcess(['migrate'], { main })).toMatchObject({ code: 78 });
    for (const [command, name, exitCode] of [
      ['tail', 'AMQP_URL', 78],
      ['send', 'SIGNING_SECRETS', 2],
    ] as const) {
      const { code, stderr } = await runProcess([command], { main });
      expect(code).toBe(exitCode);
      expect(stderr).toContain(name);
    }
    const alone = await runProcess(['send', '--source', 'team-a'], {
      main,
      env: { SIGNING_SECRETS: SECRET },
    });
    expect(alone.code).toBe(2);
    expect(alone.stderr).toContain('there is no source "team-a": SOURCES_FILE is not set');
  });

  test('is the file that TALLYHOOK_LOCAL_ENV names, or none where it names nothing', async () => {
    await writeFile(join(root, '.local/env'), 'PORT=1\n');
    await writeFile(join(root, 'other'), 'PORT=2\n');
    expect(withLocalRun({ TALLYHOOK_LOCAL_ENV: join(root, 'other') })).toMatchObject({ PORT: '2' });
    expect(withLocalRun({ TALLYHOOK_LOCAL_ENV: '' })).not.toHaveProperty('PORT');
  });
});
