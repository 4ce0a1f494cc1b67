// The rules of docs/relay.md, and who cites them: comments, tests, documents and the model of the relay.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { SAVING, SWITCHED_OFF } from '../model/instances.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

const filesIn = (folder: string, endings: readonly string[]) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => endings.some((ending) => name.endsWith(ending)))
    .map((name) => `${folder}/${name}`);

const numbersIn = (text: string, pattern: RegExp) =>
  Array.from(text.matchAll(pattern), ([, number]) => Number(number));

const page = read('docs/relay.md');
const rules = numbersIn(page, /^- \*\*R(\d+)\.\*\*/gm);

/** Where each number is cited, in the code and its tests. */
const cited = ['src', 'migrations', 'scripts', 'test']
  .flatMap((folder) => filesIn(folder, ['.ts']))
  .filter((file) => !file.startsWith('test/model/') && file !== 'test/unit/relay-rules.test.ts')
  .flatMap((file) => numbersIn(read(file), /\bR(\d+)\b/g).map((number) => ({ file, number })));

const model = numbersIn(read('test/model/relay.pml'), /\bRULE\((\d+)\)/g);

test('the rules of the relay are numbered one after the other', () => {
  expect(rules.length).toBeGreaterThan(40);
  expect(rules).toEqual(rules.map((_, index) => index + 1));
});

test('every rule of the relay that is cited is there', () => {
  expect(cited.length).toBeGreaterThan(40);
  expect(cited.filter(({ number }) => !rules.includes(number))).toEqual([]);
  const inText = ['docs', 'test/model']
    .flatMap((folder) => filesIn(folder, ['.md', '.pml']))
    .flatMap((file) => numbersIn(read(file), /\bR(\d+)\b/g).map((number) => ({ file, number })));
  expect(inText.filter(({ number }) => !rules.includes(number))).toEqual([]);
});

test('every rule of the relay is cited by a line of the code or by a test', () => {
  const known = new Set(cited.map(({ number }) => number));
  expect(rules.filter((rule) => !known.has(rule))).toEqual([]);
});

test('each rule that the model switches off is one of these, and what it gives is known', () => {
  const known = [...SWITCHED_OFF.map(({ rule }) => rule), ...SAVING];
  expect(new Set(model)).toEqual(new Set(known));
  expect(known.filter((rule) => !rules.includes(rule))).toEqual([]);
});

test('each rule says what breaks without it, or what it saves', () => {
  const told = page
    .split(/^- \*\*R/m)
    .slice(1)
    .map((text) => text.replaceAll(/\s+/g, ' '));
  const silent = told.filter((text) => !text.includes('Without it') && !text.includes('saves'));
  expect(silent.map((text) => text.slice(0, 40))).toEqual([]);
  for (const rule of SAVING) expect(told[rule - 1]).toMatch(/\bno instance/i);
});
