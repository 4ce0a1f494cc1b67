// What `npm start -- --help` and its like print, and what wrong options get: at once, before anything is installed or started.

import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { CASES } from '../../bench/results.ts';
import { HELP, PASSED_OPTIONS } from '../../src/sandbox/command/help.ts';
import { readStartOptions } from '../../scripts/start-options.ts';
import { createFolder } from '../support/folder.ts';

const SCRIPTS = fileURLToPath(new URL('../../scripts', import.meta.url));
const NAMES = [
  'start',
  'demo',
  'check',
  'check-fast',
  'bench',
  'torture',
  'soak',
  'model',
  'pictures',
  'contracts',
  'manifests',
  'pack',
  'image',
];

const usageOf = (name: string) => readFileSync(`${SCRIPTS}/usage/${name}.txt`, 'utf8');

function runScript(...args: string[]) {
  return spawnSync(process.execPath, [`${SCRIPTS}/${args[0]}.ts`, ...args.slice(1)], {
    env: { PATH: process.env['PATH'] },
    encoding: 'utf8',
  });
}

describe('--help', () => {
  test('is printed in a folder where no package is installed, and leaves it as it was', async () => {
    await using folder = await createFolder();
    cpSync(SCRIPTS, folder.path('scripts'), { recursive: true });
    for (const name of NAMES) {
      for (const flag of ['--help', '-h']) {
        const args = [folder.path('scripts/run.mjs'), name, flag];
        expect(execFileSync(process.execPath, args, { encoding: 'utf8' })).toBe(usageOf(name));
      }
    }
    expect(readdirSync(folder.path('.'))).toEqual(['scripts']);
  });

  test('of npm start has each option that it takes, in the words of the sandbox’s own help', () => {
    const usage = usageOf('start');
    expect(usage).toMatch(/^ {2}--sandbox /m);
    for (const name of Object.keys(PASSED_OPTIONS)) {
      const [, line = ''] = new RegExp(`^ +(--${name} .+)$`, 'm').exec(HELP) ?? [];
      expect(usage).toContain(line.replace('debug,', 'of the sandbox’s log: debug,').replaceAll('’', "'"));
      expect(line).not.toBe('');
    }
  });
});

describe('npm start', () => {
  test('passes options on to the sandbox', () => {
    expect(readStartOptions([])).toEqual({ sandbox: undefined });
    expect(readStartOptions(['--sandbox'])).toEqual({ sandbox: { engine: undefined, args: [] } });
    const args = ['--engine', 'simulated', '--chaos-tamper', '0.5'];
    expect(readStartOptions(['--sandbox', ...args])).toEqual({ sandbox: { engine: 'simulated', args } });
  });

  test.for([
    [['--chaos-tamper', '0.5'], '--chaos-tamper is an option of the sandbox: add --sandbox'],
    [['--sandbox', '--chaos-tamper', '2'], '--chaos-tamper takes a number from 0 to 1'],
    [['--sandbox', '--engine', 'best'], '--engine takes one of auto, ffmpeg, simulated'],
    [['--sandbox', '--log-level', 'loud'], '--log-level takes one of debug'],
    [['--sandbox', '--port', '1'], "Unknown option '--port'"],
    [['now'], 'unexpected argument "now"'],
  ] as const)('refuses %j before anything starts', ([args, words]) => {
    expect(() => readStartOptions([...args])).toThrow(words);
  });
});

test.for([
  [['start', '--port', '1'], 'npm start'],
  [['demo', '--colour'], 'npm run demo'],
  [['check-fast', '--colour'], 'npm run check:fast'],
  [['bench', '--colour'], 'npm run bench'],
  [['bench', '--only', 'nothing'], 'npm run bench'],
  [['torture', '--colour'], 'npm run torture'],
  [['soak', '--minutes', 'x'], 'npm run soak'],
  [['model', '--colour'], 'npm run model'],
  [['model', '--without', '1'], 'npm run model'],
  [['pictures', '--colour'], 'npm run pictures'],
  [['contracts', '--colour'], 'npm run contracts'],
  [['pictures', '--only', 'nothing'], 'npm run pictures'],
  [['manifests', '--colour'], 'npm run manifests'],
  [['pack', '--colour'], 'npm run pack'],
  [['image'], 'npm run image'],
] as const)('%j is wrong usage: exit code 2, what is wrong, and where help is', ([args, command]) => {
  const { status, stdout, stderr } = runScript(...args);
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
  expect(stderr.trim().split('\n')).toEqual([expect.any(String), `Try "${command} -- --help".`]);
});

test('a benchmark case that there is not is answered with those that there are', () => {
  const { stderr } = runScript('bench', '--only', 'nothing');
  expect(stderr).toContain(`There are: ${CASES.join(', ')}`);
});
