// What `npm test -- --changed` runs: the test files that the changes since the last commit can reach. vitest follows imports. What is
// read or started by its path it cannot see; the rules below name what stands for such a file.

import { execFileSync } from 'node:child_process';
import { basename, join, relative } from 'node:path';
import { createVitest } from 'vitest/node';
import { ROOT } from './relay.ts';

/** Reads the migrations by their folder. */
const MIGRATE = 'src/ledger/schema/migrate.ts';
/** Has the path of the program that tests start as a process. */
const PROGRAM = 'scripts/program.ts';

const git = (...args: readonly string[]) => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' });

const isCode = (file: string) => /\.(?:ts|mjs)$/.test(file);

/** Of the present change, committed or not, since `base`; by their paths from the root. @throws Error if git knows no such commit */
export function changedFiles(base = 'HEAD'): string[] {
  const listed = [
    git('diff', '--name-only', '--relative', '--merge-base', base),
    git('ls-files', '--others', '--exclude-standard'),
  ];
  return [...new Set(listed.join('').split('\n').filter(Boolean))];
}

/** The files whose importers a change of `file` reaches. @param readersOf the code that mentions a file's name */
export function standInsFor(file: string, readersOf: (name: string) => string[]): string[] {
  if (file.startsWith('migrations/')) return [file, MIGRATE, PROGRAM];
  const itself = isCode(file) ? [file] : readersOf(basename(file));
  return file.startsWith('src/') ? [...itself, PROGRAM] : itself;
}

/** Whether it is a text that the unit tests read as a whole: documents, examples, contracts, and what else is no code. */
export function isText(file: string): boolean {
  return !isCode(file) && !file.startsWith('src/') && !file.startsWith('migrations/');
}

function mentions(name: string): string[] {
  try {
    return git('grep', '-l', '-F', '-e', name, '--', '*.ts', '*.mjs').split('\n').filter(Boolean);
  } catch {
    return []; // git grep exits with 1 if nothing is found
  }
}

/** The test files that these changes reach, by their paths from the root. Starts nothing. */
export async function testsReachedBy(changed: readonly string[]): Promise<string[]> {
  const related = [...new Set(changed.flatMap((file) => standInsFor(file, mentions)))];
  const vitest = await createVitest('test', {
    watch: false,
    related: related.map((file) => join(ROOT, file)),
  });
  try {
    const reached = await vitest.getRelevantTestSpecifications();
    const texts = changed.some(isText) ? await vitest.globTestSpecifications(['test/unit/']) : [];
    return [...new Set([...reached, ...texts].map(({ moduleId }) => relative(ROOT, moduleId)))].toSorted();
  } finally {
    await vitest.close();
  }
}
