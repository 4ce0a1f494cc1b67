// The command line as a process: what a real terminal, a pipe and the shell make of it. Everything else is tested by calling
// the command (test/support/cli.ts).

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { stripVTControlCharacters } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MAIN } from '../../../scripts/program.ts';
import { type Cli, cliOf } from '../../support/cli.ts';
import { INHERITED, NO_LOCAL_RUN, runProcess } from '../../support/replica.ts';
import { completed, deliver, newJobId } from '../../support/sender.ts';
import { startTestService, type TestService } from '../../support/service.ts';

/** `script` of util-linux gives a process a terminal. */
const SCRIPT = '/usr/bin/script';

let relay: TestService;
let cli: Cli;
beforeAll(async () => {
  relay = await startTestService();
  cli = await cliOf(relay, { role: 'operator' });
  await deliver(relay.webhooks, completed(newJobId()));
  await deliver(relay.webhooks, { job_id: newJobId(), status: 'paused' });
});
afterAll(() => relay[Symbol.asyncDispose]());

test.for([
  ['deliveries', 'list'],
  ['jobs', 'show', 'job_nobody'],
  ['jobs', 'list', '--colour'],
  ['outbox'],
  ['quarantine', 'release', '--all'],
])('%j prints and returns as a process what it does when it is called', async (args) => {
  expect(await runProcess(args, { env: cli.env })).toEqual(await cli.run(...args));
});

describe.skipIf(!existsSync(SCRIPT))('on a real terminal', () => {
  test('a table has colours and the width of the terminal, unless NO_COLOR is set', async () => {
    const args = ['deliveries', 'list'];
    const { screen } = await cli.onTerminal(args);
    const real = await onRealTerminal(args, cli.env);

    expect(real.code).toBe(0);
    expect(textOf(real.output)).toBe(screen);
    expect(real.output).toContain('\u001b[32maccepted\u001b[39m');
    const plain = await onRealTerminal(args, { ...cli.env, NO_COLOR: '1' });
    expect(plain.output.replaceAll('\r', '')).toBe(screen);
  });

  test('a question is asked, and what is typed is the answer', async () => {
    const args = ['quarantine', 'discard', '--all', '--note', 'sent by mistake'];
    const no = await onRealTerminal(args, cli.env, 'n\n');
    expect(no.code).toBe(1);
    expect(textOf(no.output)).toContain('Discard 1 delivery for good? [y/N]');
    const yes = await onRealTerminal(args, cli.env, 'y\n');
    expect(yes.code).toBe(0);
    expect(textOf(yes.output)).toContain('1 delivery discarded');
  });
});

const textOf = (output: string) => stripVTControlCharacters(output).replaceAll('\r', '');

/** Of 120 columns. `input` is typed before the question is asked: the terminal keeps it until it is read. */
async function onRealTerminal(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  input = '',
): Promise<{ code: number | null; output: string }> {
  const command = [process.execPath, MAIN, ...args].map((word) => `'${word.replaceAll("'", `'\\''`)}'`);
  const child = spawn(SCRIPT, ['-qec', `stty cols 120; exec ${command.join(' ')}`, '/dev/null'], {
    env: { ...INHERITED, ...NO_LOCAL_RUN, TERM: 'xterm', ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString('utf8')));
  child.stdin.write(input);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  return { code, output };
}
