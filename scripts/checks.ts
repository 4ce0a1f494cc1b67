// What the checks are made of: the steps (format, lint, types), the tests, and the last line, which counts them all.

import { closeSync, openSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { type Ending, endOnRequest } from './ending.ts';
import { complain, explain, type Progress, say } from './output.ts';
import { ROOT } from './relay.ts';
import { makeFolder } from './services/folders.ts';
import { createGuard, type Guard } from './services/guard.ts';

export type Tally = { readonly passed: number; readonly failed: number; readonly skipped: number };

/** The parts of vitest's JSON report that are read. */
type Report = {
  readonly success: boolean;
  readonly numPassedTests: number;
  readonly numPendingTests: number;
  readonly numTodoTests: number;
  readonly testResults: readonly FileReport[];
};

type FileReport = {
  /** Its path. */
  readonly name: string;
  readonly status: string;
  /** Of a file that did not load. */
  readonly message: string;
  readonly assertionResults: readonly {
    readonly status: string;
    readonly fullName: string;
    readonly failureMessages: readonly string[];
  }[];
};

const STEPS = {
  format: ['biome', 'format', '.'],
  lint: ['oxlint', '--type-aware', '--deny-warnings'],
  // Kept between runs: what did not change is not checked again, which is nine tenths of the time.
  types: ['tsc', '--incremental', '--tsBuildInfoFile', 'node_modules/.cache/types.tsbuildinfo'],
} as const;

const ALL_STEPS = Object.keys(STEPS) as (keyof typeof STEPS)[];

/** What a step or a run of tests works with. `folder` is deleted with the run. */
export type Run = { readonly guard: Guard; readonly folder: string; readonly progress: Progress };

const PASSED: Tally = { passed: 1, failed: 0, skipped: 0 };
export const FAILED: Tally = { passed: 0, failed: 1, skipped: 0 };
const TERM = { signal: 'SIGTERM', graceMs: 10_000 } as const;

/** All at once. */
export function runSteps(run: Run): Promise<Tally[]> {
  return Promise.all(ALL_STEPS.map((step) => runStep(step, run)));
}

async function runStep(step: keyof typeof STEPS, { guard, folder, progress }: Run): Promise<Tally> {
  const [program, ...args] = STEPS[step];
  const outputFile = join(folder, `${step}.txt`);
  const output = openSync(outputFile, 'w');
  const child = guard.spawn(join(ROOT, 'node_modules/.bin', program), args, {
    cwd: ROOT,
    env: process.env,
    ending: TERM,
    output,
  });
  closeSync(output);
  try {
    await progress.during(step, async () => {
      const { code } = await child.exited;
      if (code !== 0) throw new Error(`${step} failed`);
    });
    return PASSED;
  } catch {
    progress.note(readFileSync(outputFile, 'utf8').trimEnd());
    return FAILED;
  }
}

/** `variables`: those that the tests read, which name their servers among others. */
export async function runTests(
  vitestArgs: readonly string[],
  { guard, folder, progress }: Run,
  variables: NodeJS.ProcessEnv = {},
): Promise<Tally> {
  const reportFile = join(folder, 'vitest.json');
  // The tests' temporary folder is deleted with ours.
  const temporary = join(folder, 'tmp');
  makeFolder(temporary);
  // Hundreds of processes load the same modules.
  const env = {
    NODE_COMPILE_CACHE: join(folder, 'compiled'),
    ...process.env,
    ...variables,
    TMPDIR: temporary,
  };
  const reporters = vitestArgs.some((argument) => argument.startsWith('--reporter'))
    ? []
    : ['--reporter=default'];
  // vitest writes colours into files and pipes, too.
  const colours = process.stdout.isTTY || process.env['FORCE_COLOR'] ? [] : ['--no-color'];
  const vitest = guard.spawn(
    join(ROOT, 'node_modules/.bin/vitest'),
    ['run', ...colours, ...reporters, '--reporter=json', `--outputFile.json=${reportFile}`, ...vitestArgs],
    { cwd: ROOT, env, ending: TERM, output: 'inherit' },
  );
  const { code } = await vitest.exited;
  return tallyTests(reportFile, code, progress);
}

/** A file that does not load and an error outside of all tests are failures, too, and so is a run without tests. */
function tallyTests(reportFile: string, exitCode: number | null, progress: Progress): Tally {
  let found: Report;
  try {
    found = JSON.parse(readFileSync(reportFile, 'utf8')) as Report;
  } catch {
    return FAILED;
  }
  const failures = found.testResults.flatMap(failuresOf);
  for (const failure of failures) progress.note(failure);
  const isFailure = exitCode !== 0 || !found.success || found.numPassedTests === 0;
  return {
    passed: found.numPassedTests,
    failed: failures.length === 0 && isFailure ? 1 : failures.length,
    skipped: found.numPendingTests + found.numTodoTests,
  };
}

/** What failed in a file, a line each. vitest tells more, thousands of lines above, of which some CI keep only the end. */
function failuresOf({ name, status, message, assertionResults }: FileReport): string[] {
  const path = relative(ROOT, name);
  const failed = assertionResults.filter((result) => result.status === 'failed');
  if (status === 'failed' && failed.length === 0) return [`failed: ${path}: ${firstLine(message)}`];
  return failed.map(
    ({ fullName, failureMessages }) =>
      `failed: ${path} > ${fullName}: ${failureMessages.map(firstLine).join('; ')}`,
  );
}

const firstLine = (text: string) => text.trimStart().split('\n', 1)[0] ?? '';

/** Runs the work, which may be nothing, ends all that it started, and prints the last line. @returns the exit code */
export async function tallyAll(work: (guard: Guard) => Promise<readonly Tally[]>): Promise<number> {
  const guard = createGuard();
  const ending = endOnRequest(guard);
  let tallies: readonly Tally[] = [];
  try {
    tallies = await work(guard);
  } catch (error) {
    if (!ending.isAsked()) complain(explain(error));
    tallies = [FAILED];
  } finally {
    await guard.close();
  }
  return report(tallies, ending);
}

function report(tallies: readonly Tally[], ending: Ending): number {
  const sum = (part: keyof Tally) => tallies.reduce((total, tally) => total + tally[part], 0);
  const skipped = sum('skipped');
  say(`${sum('passed')} passed, ${sum('failed')} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
  return ending.exitCode() ?? (sum('failed') === 0 && (tallies.length === 0 || sum('passed') > 0) ? 0 : 1);
}
