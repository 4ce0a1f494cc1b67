// Code in the documents that is a file of its own: `<!-- from examples/… -->` stands above a block of code, and the block is
// that file. After a change of the file: npm test -- test/unit/included.test.ts --update

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

const BLOCK = /^(<!-- from (\S+) -->\n```\w+\n).*?^```$/gms;

const withFiles = (page: string) =>
  page.replaceAll(BLOCK, (_block, head: string, path: string) => `${head}${read(path).trimEnd()}\n\`\`\``);

const pages = ['README.md', ...readdirSync(join(ROOT, 'docs')).map((name) => `docs/${name}`)].filter(
  (path) => path.endsWith('.md') && read(path).includes('<!-- from '),
);

describe.each(pages)('%s', (page) => {
  const text = read(page);

  test('each block of code that comes from a file is that file', async () => {
    await expect(withFiles(text)).toMatchFileSnapshot(join(ROOT, page));
  });

  test('each mark stands above a block of code', () => {
    expect([...text.matchAll(BLOCK)]).toHaveLength(text.split('<!-- from ').length - 1);
  });
});
