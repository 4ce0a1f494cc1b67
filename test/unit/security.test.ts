// docs/security.md claims what code does and tests show: each file, test and default that it names must be there.

import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const at = (path: string) => new URL(`../../docs/${path}`, import.meta.url);
const page = readFileSync(at('security.md'), 'utf8');
const configuration = readFileSync(at('../docs/configuration.md'), 'utf8');

/** `[name]: path` at the page's end. */
const definitions = new Map(
  Array.from(page.matchAll(/^\[([^\]]+)\]: (\S+)$/gm), ([, name = '', path = '']) => [name, path] as const),
);

/** A table's variables with their defaults, `NAME` → `value`. */
function defaultsIn(text: string, row: RegExp): [string, string | undefined][] {
  return [...text.matchAll(row)].flatMap(([, names = '', values = '']) => {
    const defaults = [...values.matchAll(/`([^`]+)`/g)].map(([, value]) => value);
    return [...names.matchAll(/`([A-Z_]{4,})`/g)].map(
      ([, name = ''], index): [string, string | undefined] => [name, defaults[index]],
    );
  });
}

test('every file that the page on security names is there', () => {
  const inline = Array.from(page.matchAll(/\]\((?!https:|#)([^)#]+)/g), ([, path = '']) => path);
  const paths = [...definitions.values(), ...inline];
  expect(paths.length).toBeGreaterThan(50);
  expect(paths.filter((path) => !existsSync(at(path)))).toEqual([]);
  const used = Array.from(page.matchAll(/\[([^\]]+)\](?![(:])/g), ([, name = '']) => name);
  expect(new Set(used)).toEqual(new Set(definitions.keys()));
  // A label that is a file's name is that of the file behind it.
  const misnamed = [...definitions].filter(
    ([label, path]) => /\.(?:ts|js|css)$/.test(label) && !path.endsWith(`/${label}`),
  );
  expect(misnamed).toEqual([]);
});

test('every test that the page on security names is in the file that it names', () => {
  const named = Array.from(
    page.matchAll(/\*([^*|\n]+)\*((?:, \*[^*|\n]+\*)*) \(\[([^\]]+)\]\)/g),
    ([, first = '', others = '', file = '']) =>
      [first, ...Array.from(others.matchAll(/\*([^*]+)\*/g), ([, name = '']) => name)].map((name) => ({
        name,
        path: definitions.get(file) ?? '',
      })),
  ).flat();
  expect(named.length).toBeGreaterThan(50);
  // Each in italics is a test: none is passed over for want of its file.
  expect(named).toHaveLength([...page.matchAll(/(?<!\*)\*[^*|\n]+\*(?!\*)/g)].length);
  const missing = named.filter(
    ({ name, path }) => !path.startsWith('../test/') || !readFileSync(at(path), 'utf8').includes(name),
  );
  expect(missing).toEqual([]);
});

test('the limits on the page on security are those of the page on configuration', () => {
  const limits = page.slice(page.indexOf('## Limits'), page.indexOf('## Keys'));
  const stated = defaultsIn(limits, /^\| [^|]+ \| ([^|]+) \| ([^|]*) \|/gm).filter(
    ([, value]) => value !== undefined,
  );
  const documented = new Map(defaultsIn(configuration, /^\| ([^|]+) \| ([^|]*) \|/gm));
  expect(stated.length).toBeGreaterThan(15);
  expect(stated).toEqual(stated.map(([name]) => [name, documented.get(name)]));
});
