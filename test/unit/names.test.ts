// In npm's registry the name `tallyhook` is nobody's: a program of whoever takes it would run wherever npm is told to look it up.
// So nothing that people copy from here gives the name alone to npm, only the packed file, or the command by its place.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** What is read and copied: documents, pictures, texts that programs print, files for servers. Not our tests. */
const FOLDERS = ['.github', 'bench', 'bin', 'contracts', 'deploy', 'docs', 'examples', 'scripts', 'src'];
const NOT_READ = /(?:^|\/)package-lock\.json$|\.(?:png|webp|ico|mp4)$/;

const files = [
  ...readdirSync(ROOT, { withFileTypes: true }),
  ...FOLDERS.filter((name) => existsSync(join(ROOT, name))).flatMap((name) =>
    readdirSync(join(ROOT, name), { recursive: true, withFileTypes: true }),
  ),
]
  .filter((entry) => entry.isFile())
  .map(({ parentPath, name }) => join(parentPath, name))
  .filter((path) => !NOT_READ.test(path));

/** A program that fetches packages, and after any options the name as a whole word: `./tallyhook-0.1.0.tgz` is none. */
const FETCHES = new RegExp(
  [
    String.raw`\b(?:npx|bunx|pnpx|(?:npm|pnpm|yarn|bun)(?:\s+-\S+)*\s+(?:exec|x|dlx|install|i|ci|add|create|init))\b`,
    String.raw`(?:[ \t]+[^\s|;&\x60]+)*?[ \t]+(?:--?\w[\w-]*=)?["']?tallyhook(?:@[\w.^~-]+)?(?![\w./@-])`,
  ].join(''),
);
/** As a dependency that is a version: npm would fetch it. */
const DEPENDS = /"tallyhook":\s*"(?:npm:|[\^~*\d]|latest)/;

const faultsIn = (text: string): string[] =>
  text.split('\n').filter((line) => line.includes('tallyhook') && (FETCHES.test(line) || DEPENDS.test(line)));

test('nothing that people copy from here has npm fetch a package by our name', () => {
  expect(files.length).toBeGreaterThan(500);
  const faults = files.flatMap((file) =>
    faultsIn(readFileSync(file, 'utf8')).map((line) => `${file}: ${line}`),
  );
  expect(faults).toEqual([]);
});

test.for([
  'npx tallyhook doctor',
  'run `npx tallyhook serve`',
  'xargs npx --yes tallyhook replay',
  'npx -p tallyhook tallyhook send',
  'npx --package=tallyhook send',
  'npm install tallyhook',
  'npm i -g tallyhook@latest',
  'npm exec --yes -- tallyhook serve',
  'RUN npm install --omit=dev "tallyhook"',
  'pnpm dlx tallyhook',
  'yarn add tallyhook',
  '"tallyhook": "^0.1.0"',
])('it would be found: %s', (line) => {
  expect(faultsIn(line)).toEqual([line]);
});

test.for([
  'npm install ./tallyhook-0.1.0.tgz',
  'npm install ./tallyhook-<version>.tgz    # in your project',
  'node_modules/.bin/tallyhook doctor',
  'npm run tallyhook -- send',
  'npm ci; tallyhook serve',
  'npm install pg && tallyhook serve',
  '"tallyhook": "file:tallyhook-0.1.0.tgz"',
])('it is sound: %s', (line) => {
  expect(faultsIn(line)).toEqual([]);
});
