// docs/runbook.md: it has a section for each condition and no other, its commands and options exist, and so do its pages of the console.

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { CONDITIONS } from '../../src/base/conditions.ts';
import { PAGES } from '../../src/operators/pages.ts';
import { runCommand } from '../support/cli.ts';
import { commandsOf } from '../support/runbook.ts';

const text = readFileSync(new URL('../../docs/runbook.md', import.meta.url), 'utf8');
const names = Object.keys(CONDITIONS);
const sections = text.split(/^##+ /m);
const sectionOf = (name: string) => sections.find((part) => part.startsWith(`${name}\n`)) ?? '';

/** Such as `tallyhook jobs list --state stuck`, in a block or in a sentence. */
const commands = [...new Set(text.match(/\btallyhook [a-z][^\n`|)"]*/g))].map((line) => line.trim());

test('it has a section for each condition, in their order, and no other', () => {
  const headings = [...text.matchAll(/^### (.+)$/gm)].map(([, name]) => name);
  expect(headings).toEqual(names);
});

test.each(names)('%s: it says what it means, what to look at and what to do, with a command', (name) => {
  const section = sectionOf(name);
  for (const part of ['**It means:** ', '**Look at**', '**Do:** ']) expect(section).toContain(part);
  expect(commandsOf(name)).not.toEqual([]);
});

test.each(commands)('%s: there is such a command, with these options', async (command) => {
  const [, noun = '', ...rest] = command.split(' ');
  const { code, stdout } = await runCommand([noun, '--help']);
  expect(code).toBe(0);
  const verb = /^[a-z]+$/.test(rest[0] ?? '') ? ` ${rest[0]}` : '';
  const options = rest.filter((word) => word.startsWith('--')).map((option) => `${option} `);
  for (const named of [`${noun}${verb}`, ...options]) expect(stdout).toContain(named);
});

test('each address of the console in it is that of a page', () => {
  const paths = PAGES.filter(({ method }) => method === 'get').map(({ path }) => path);
  const addresses = [...text.matchAll(/\/console(\/[a-z-]*)?/g)].map(([, path]) => path ?? '/');
  expect(addresses.length).toBeGreaterThan(5);
  expect(addresses.filter((path) => !paths.some((page) => page === path))).toEqual([]);
});
