import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { runProgram } from '../../../src/sandbox/engine/program.ts';
import { waitFor } from '../../support/waits.ts';

const PROGRAM = fileURLToPath(new URL('../../../src/sandbox/engine/program.ts', import.meta.url));

/** Runs a program that prints its process id and would run for long. */
const RUN = `
const { runProgram } = await import(${JSON.stringify(PROGRAM)});
const { signal } = new AbortController();
await runProgram('/bin/sh', ['-c', 'echo $$; exec sleep 600'], { folder: '.', signal, onLine: (line) => console.log(line) });
`;

/** Empty for a process that has ended or is a zombie. */
function commandOf(pid: number): string {
  const file = `/proc/${pid}/cmdline`;
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
}

test.skipIf(process.platform !== 'linux')('a program goes with us, also when we are killed', async () => {
  const runner = spawn(process.execPath, ['--input-type=module', '-e', RUN], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(runner.stdout, 'data')) as [Buffer];
  const pid = Number(line.toString('utf8'));
  await waitFor(() => expect(commandOf(pid)).toContain('sleep'));

  runner.kill('SIGKILL');

  await waitFor(() => expect(commandOf(pid)).toBe(''));
});

test.skipIf(process.platform !== 'linux')('a program may use 2 GiB of address space', async () => {
  const lines: string[] = [];
  await runProgram('/bin/cat', ['/proc/self/limits'], {
    folder: '.',
    signal: new AbortController().signal,
    onLine: (line) => void lines.push(line),
  });

  expect(lines.find((line) => line.startsWith('Max address space'))).toMatch(/ 2147483648 +2147483648 /);
});

test('nothing of a program’s arguments is read by a shell', async () => {
  const lines: string[] = [];
  const args = ['$(id)', '`id`', '; id', "'", '"', '*', '-c', '', 'a b'];
  await runProgram('/usr/bin/printf', ['%s\\n', ...args], {
    folder: '.',
    signal: new AbortController().signal,
    onLine: (line) => void lines.push(line),
  });

  expect(lines).toEqual(args);
});
