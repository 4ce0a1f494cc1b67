// The documents as a reader meets them: their links lead somewhere, and the README stays short.

import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const README_LINES_MAX = 150;

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

const pages = [
  'README.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'bench/README.md',
  'contracts/README.md',
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];

const withoutCode = (text: string) => text.replaceAll(/^```.*?^```/gms, '').replaceAll(/`[^`\n]*`/g, '');

/** The anchors that GitHub makes of a page's headings. */
function anchorsOf(path: string): Set<string> {
  const headings = [...read(path).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  );
  return new Set(headings);
}

test('every link within the documents leads to a file, and to a heading of it', () => {
  const broken = pages.flatMap((page) =>
    [...withoutCode(read(page)).matchAll(/\]\((?!https?:)([^)\s]+)\)/g)]
      .map(([, target = '']) => target)
      .filter((target) => {
        const [path = '', anchor] = target.split('#');
        const file = path === '' ? page : normalize(join(dirname(page), path));
        if (!existsSync(join(ROOT, file))) return true;
        return anchor !== undefined && !anchorsOf(file).has(anchor);
      })
      .map((target) => `${page}: ${target}`),
  );
  expect(broken).toEqual([]);
});

test('every page of docs can be reached from the README by links', () => {
  const reached = new Set(['README.md']);
  for (const page of reached) {
    for (const [, target = ''] of withoutCode(read(page)).matchAll(/\]\((?!https?:)([^)#\s]+\.md)/g))
      reached.add(normalize(join(dirname(page), target)));
  }
  expect(pages.filter((page) => !reached.has(page) && page !== 'bench/README.md')).toEqual([]);
});

test(`the README has at most ${README_LINES_MAX} lines`, () => {
  expect(read('README.md').trimEnd().split('\n').length).toBeLessThanOrEqual(README_LINES_MAX);
});

test('each picture of the console is shown, and all together are below a megabyte', () => {
  const folder = join(ROOT, 'docs/console');
  const shown = [...read('docs/console.md').matchAll(/^!\[.+\]\(console\/(.+)\)$/gm)].map(([, name]) => name);
  const files = readdirSync(folder);
  expect(new Set(shown)).toEqual(new Set(files));
  const bytes = files.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
  expect(bytes).toBeLessThan(1_000_000);
});
