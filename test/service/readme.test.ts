// Every command of the README, run as it stands there, in a copy of the project: what a new user does in the first minutes.
// A comment behind a command that begins with a status or a brace is what the command prints.

import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeClone } from '../support/clone.ts';
import { patience } from '../support/patience.ts';
import { until } from '../support/until.ts';

const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');

/** The blocks of code in one language. */
const blocks = (language: string) =>
  [...readme.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)\\n\`\`\``, 'gms'))].map(([, code = '']) => code);

const [twoCommands = '', ...firstMinutes] = blocks('sh');
const [startCommand = '', testCommand = ''] = twoCommands.split('\n');

/** A user's terminal knows nothing of npm's own variables, of vitest's, or of the servers of this run. */
const OURS = /^(?:npm_|TEST_|VITEST|NODE_|DATABASE_URL|AMQP_URL|TALLYHOOK_)/;
const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !OURS.test(name)));

const READY_MS = 120_000;
const EVENT_MS = 20_000;

type Shell = AsyncDisposable & {
  readonly output: () => string;
  readonly ended: Promise<number | null>;
  /** To all that it started. */
  readonly send: (signal: NodeJS.Signals) => void;
};

function runInShell(script: string, folder: string): Shell {
  const child: ChildProcess = spawn('sh', ['-c', script], {
    cwd: folder,
    env: environment,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => (output += chunk.toString('utf8')));
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', resolve);
  });
  const send = (signal: NodeJS.Signals) => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, signal);
    } catch {
      // All of it has ended.
    }
  };
  return {
    output: () => output,
    ended,
    send,
    [Symbol.asyncDispose]: async () => {
      send('SIGTERM'); // npm start cleans up what its servers leave
      await ended;
    },
  };
}

/** Runs the lines of a block in one shell. @returns what each printed, and its exit code */
async function runLines(shell: (script: string) => Shell, lines: readonly string[]) {
  const running = shell(lines.map((line) => `${line}\nprintf '\\n== %s\\n' $?`).join('\n'));
  await running.ended;
  await until(
    'all output was read',
    () => (running.output().match(/^== \d+$/gm)?.length === lines.length ? true : undefined),
    { limitMs: EVENT_MS },
  );
  const parts = running.output().split(/^== (\d+)\n/m);
  return lines.map((line, index) => ({
    line,
    printed: parts[2 * index],
    code: Number(parts[2 * index + 1]),
  }));
}

test('each command of the first five minutes does what stands behind it', {
  timeout: patience(240_000),
}, async () => {
  await using clone = await makeClone();
  await using shells = new AsyncDisposableStack();
  const shell = (script: string) => shells.use(runInShell(script, clone.folder));
  const [, subscriber = ''] = /Save this as `([\w.]+)`/.exec(readme) ?? [];
  writeFileSync(join(clone.folder, subscriber), blocks('js').join('\n'));

  const start = shell(startCommand);
  const ready = until(
    'npm start is ready',
    () => (start.output().includes('Ctrl-C ends everything') ? true : undefined),
    { limitMs: READY_MS },
  );
  const died = start.ended.then((code) => {
    throw new Error(`npm start ended with ${code}:\n${start.output()}`);
  });
  died.catch(() => {});
  await Promise.race([ready, died]);

  expect(firstMinutes.length).toBeGreaterThan(3);
  let all = '';
  const exported: string[] = []; // in one terminal they last
  for (const block of firstMinutes) {
    const lines = block.split('\n');
    for (const { line, printed = '', code } of await runLines(shell, [...exported, ...lines])) {
      const [, promised = ''] = /\s#\s((?:\d{3} |\{).*)$/.exec(line) ?? [];
      const isRefused = /^[45]\d\d /.test(promised);
      expect({ line, printed, code }).toMatchObject({ code: isRefused ? 1 : 0 });
      expect(printed).toContain(promised);
      all += printed;
    }
    exported.push(...lines.filter((line) => line.startsWith('export ')));
  }
  const accepted = [...all.matchAll(/^202 accepted (\S+)/gm)].map(([, id]) => id);
  expect(accepted).toContain('default:job_1:completed');
  await expect.poll(start.output, { timeout: patience(EVENT_MS) }).toContain('default:job_2:processing:45');
  for (const id of accepted) expect(start.output()).toContain(id);
  start.send('SIGINT');
  await expect.poll(start.output, { timeout: patience(EVENT_MS) }).toMatch(/^ended$/m);
});

test('npm test runs one file, as the README says, and counts at the end', async () => {
  await using clone = await makeClone();
  const [, ofOneFile = ''] = /`(npm test -- test[^`]+)`/.exec(readme) ?? [];
  expect(testCommand).toMatch(/^npm test /);

  await using tests = runInShell(ofOneFile, clone.folder);

  expect(await tests.ended).toBe(0);
  expect(tests.output().trimEnd().split('\n').at(-1)).toMatch(/^\d+ passed, 0 failed$/);
});
