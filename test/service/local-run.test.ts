// `npm start` as a newcomer runs it, in a copy of the project in a folder of its own, on the tests' Postgres and RabbitMQ:
// what it prints works when it is pasted, and a second sandbox works beside it.

import { execFile, spawn } from 'node:child_process';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { findFreePort } from '../../scripts/services/ports.ts';
import { amqpUrl, listen, newExchange } from '../support/bus.ts';
import { copyProgram } from '../support/clone.ts';
import { askConsole, sessionIn } from '../support/console.ts';
import { createTestDatabase } from '../support/database.ts';
import { createFolder, type TestFolder } from '../support/folder.ts';
import { INHERITED, runProcess } from '../support/replica.ts';
import { until } from '../support/until.ts';

const run = promisify(execFile);
const PATIENCE = { limitMs: 40_000 };

type LocalRun = {
  readonly root: string;
  readonly main: string;
  /** The printed command that begins so, with the lines that continue it. */
  readonly line: (start: string) => string;
  /** Runs a command in a new shell in that folder, which inherits nothing. */
  readonly paste: (command: string) => Promise<string>;
  readonly outcomes: () => Promise<string[]>;
  /** All that npm start has printed. */
  readonly output: () => string;
};

let folder: TestFolder;

/** One copy for all tests, since Node compiles each one anew. */
beforeAll(async () => {
  folder = await createFolder();
  await copyProgram(folder.path('.'), ['scripts']);
});
afterAll(() => folder[Symbol.asyncDispose]());

/** `prepare` writes files before the start, and may return variables for it. Ended after the test. */
async function startLocalRun(
  args: string[],
  prepare: (root: string) => Promise<void | Record<string, string>> = async () => {},
): Promise<LocalRun> {
  const root = folder.path('.');
  await rm(join(root, '.local'), { recursive: true });
  await mkdir(join(root, '.local'));
  const variables = await prepare(root);
  const exchange = newExchange();
  const bus = await listen(exchange); // removes the exchange after the test
  onTestFinished(() => bus[Symbol.asyncDispose]());
  const database = await createTestDatabase({ empty: true });
  onTestFinished(() => database[Symbol.asyncDispose]());
  const env = {
    ...INHERITED,
    DATABASE_URL: database.url,
    AMQP_URL: amqpUrl(),
    AMQP_EXCHANGE: exchange,
    PORT: String(await findFreePort()),
    OPERATOR_PORT: String(await findFreePort()),
    ...variables,
  };
  const child = spawn(process.execPath, [join(root, 'scripts/start.ts'), ...args], {
    cwd: root,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (output += chunk.toString('utf8')));
  const exited = new Promise<void>((resolve) => void child.once('close', () => resolve()));
  onTestFinished(async () => {
    child.kill('SIGINT');
    await exited;
  });
  await until(
    'npm start is ready',
    () => {
      if (child.exitCode !== null) throw new Error(`npm start ended:\n${output}`);
      return output.includes('Ctrl-C ends everything') || undefined;
    },
    { limitMs: 60_000 },
  );
  return {
    root,
    main: join(root, 'src/main.ts'),
    output: () => output,
    line: (start) => printedLine(output, start),
    paste: async (command) => {
      const { stdout } = await run('/bin/sh', ['-c', command], { cwd: root, env: INHERITED });
      return stdout;
    },
    outcomes: async () => {
      const rows = await database.query<{ outcome: string }>('select outcome from deliveries order by id');
      return rows.map(({ outcome }) => outcome);
    },
  };
}

function printedLine(output: string, start: string): string {
  const lines = output.split('\n');
  const first = lines.findIndex((line) => line.startsWith(`  ${start}`));
  if (first === -1) throw new Error(`nothing printed begins with ${start}:\n${output}`);
  const last = lines.findIndex((line, index) => index >= first && !line.endsWith('\\'));
  return lines.slice(first, last + 1).join('\n');
}

describe('npm start', () => {
  test('prints lines that work as they stand, for both sources; a source is added while it runs', async () => {
    // As an older version left it: without export.
    const secret = 'the-secret-of-an-earlier-run';
    const local = await startLocalRun([], (root) =>
      writeFile(join(root, '.local/env'), `PORT=1\nSIGNING_SECRETS=${secret}\n`),
    );
    const send = async (...args: string[]) => {
      const { stdout, stderr } = await runProcess(['send', 'completed', ...args], { main: local.main });
      return stdout + stderr;
    };

    const [, console = '', address = ''] =
      /^ {2}operators {3}((http:\S+)\/console\/sign-in\?code=[\w-]{43})$/m.exec(local.output()) ?? [];
    const code = new URL(console).searchParams.get('code') ?? '';
    // Looking at the address does not use it up: programs of mail and chat do it by themselves.
    expect(await (await fetch(console)).text()).toContain('You opened an address that signs in once');
    const signIn = () =>
      askConsole({ operators: address }, '/console/sign-in', { method: 'POST', form: { code } });
    expect(sessionIn(await signIn())).toBeDefined();
    expect((await signIn()).status).toBe(401);

    const byHand = local.line('. ./.local/env; body=');
    expect(await local.paste(byHand)).toContain('"outcome":"accepted"');
    expect(await local.paste(byHand)).toContain('"outcome":"duplicate"');
    expect(await local.paste(local.line('. ./.local/env; curl'))).toContain('job_by_hand');
    expect(local.line('node_modules/.bin/tallyhook send completed --source')).toContain('--source team-a');
    expect(await send('--source', 'team-a')).toMatch(/^202 accepted team-a:/);

    expect(await send('--source', 'mine')).toContain('There are: default, team-a.');
    const file = join(local.root, '.local/sources.json');
    const sources = JSON.parse(await readFile(file, 'utf8')) as Record<string, unknown>;
    await writeFile(file, JSON.stringify({ ...sources, mine: { secrets: ['a-secret-of-enough-bytes'] } }));
    await until(
      'the relay has read the file again',
      async () => (await send('--source', 'mine')).startsWith('202 accepted mine:') || undefined,
      PATIENCE,
    );
    // The curl line of before, with the name that older versions had.
    const older = byHand.replace('$SIGNING_SECRET"', '${SIGNING_SECRETS%%,*}"');
    expect(older).not.toBe(byHand);
    expect(await local.paste(older)).toContain('"outcome":"duplicate"');
    const seen = await local.paste(`. ./.local/env; sh -c 'echo "$SIGNING_SECRETS $SIGNING_SECRET $PORT"'`);
    expect(seen).toMatch(new RegExp(`^${secret} ${secret} \\d{5}\n$`));
  });

  test('SIGNING_SECRETS_FILE stays a file: a secret is rotated while it runs, and a broken file is told', async () => {
    const local = await startLocalRun([], async (root) => {
      await writeFile(join(root, 'secrets'), 'the-first-secret-of-default\n');
      return { SIGNING_SECRETS_FILE: 'secrets' };
    });
    const send = async (env: Record<string, string> = {}) => {
      const { stdout, stderr } = await runProcess(['send', 'completed'], { main: local.main, env });
      return stdout + stderr;
    };
    const first = { SIGNING_SECRETS: 'the-first-secret-of-default' };
    expect(await send()).toMatch(/^202 accepted/);

    await writeFile(join(local.root, 'secrets'), 'the-second-secret-of-default\n');
    await until(
      'the relay has read the file again',
      () => local.output().includes('sources loaded: default, team-a') || undefined,
      PATIENCE,
    );
    expect(await send()).toMatch(/^202 accepted/);
    expect(await send(first)).toMatch(/^401 /);
    expect(await local.paste(local.line('. ./.local/env; body='))).toContain('"outcome":"accepted"');
    const seen = await local.paste(`. ./.local/env; env | grep ^SIGNING_ | sort`);
    expect(seen).toBe(
      `SIGNING_SECRET=the-second-secret-of-default\nSIGNING_SECRETS_FILE=${join(local.root, 'secrets')}\n`,
    );

    await writeFile(join(local.root, '.local/sources.json'), '{');
    await until(
      'npm start says that the file is broken',
      () => local.output().includes('SOURCES_FILE is not JSON') || undefined,
      PATIENCE,
    );
  });

  test('--sandbox passes options on, and its line and that of a second sandbox beside it reach the relay', async () => {
    const local = await startLocalRun(['--sandbox', '--engine', 'simulated', '--chaos-duplicates', '1']);
    await local.paste(local.line('curl -i http'));
    await until(
      'a webhook came twice, since each is sent twice',
      async () => (await local.outcomes()).includes('duplicate') || undefined,
      PATIENCE,
    );

    // In the same folder, as it is typed there. The usual ports may be taken, and the first data file is.
    const second = spawn(process.execPath, [local.main, 'sandbox', '--engine', 'simulated'], {
      cwd: local.root,
      env: INHERITED,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let said = '';
    second.stderr.on('data', (chunk: Buffer) => (said += chunk.toString('utf8')));
    const ended = new Promise<void>((resolve) => void second.once('close', () => resolve()));
    onTestFinished(async () => {
      second.kill('SIGTERM');
      await ended;
    });
    await until('the second sandbox is ready', () => said.includes('-d ') || undefined, PATIENCE);
    expect(said).toContain(join('.local', 'sandbox-2.db'));
    expect(said).not.toContain('cvs_live_');
    const created = await local.paste(printedLine(said, 'curl -i'));
    expect(created).toContain('201 Created');
    const [, job] = /"job_id":"(\w+)"/.exec(created) ?? [];
    await until(
      'its job has reached the relay',
      async () => {
        const { stdout } = await runProcess(['events', 'list', '--job', job ?? ''], { main: local.main });
        return stdout.includes(`${job}:completed`) || undefined;
      },
      PATIENCE,
    );
    expect(await local.outcomes()).not.toContain('unauthorized');
  });
});
