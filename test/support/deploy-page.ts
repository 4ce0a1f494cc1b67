// docs/deploy.md, or another page for those who deploy, as its reader meets it: tests run its commands as they stand there.

import { readFileSync } from 'node:fs';

/** @throws if there is no such heading */
function sectionOf(heading: string, page: string): string {
  const text = readFileSync(new URL(`../../docs/${page}`, import.meta.url), 'utf8');
  const section = text.split(/^#+ /m).find((part) => part.startsWith(`${heading}\n`));
  if (section === undefined) throw new Error(`docs/${page} has no heading “${heading}”`);
  return section;
}

/**
 * The blocks of code under a heading of the page, in order, without those under its subheadings.
 * @throws if there is no such heading, or no block under it: a test that runs nothing would pass
 */
export function commandsUnder(heading: string, language = 'sh', page = 'deploy.md'): string[] {
  const section = sectionOf(heading, page);
  const blocks = [...section.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms'))].map(
    ([, code = '']) => code,
  );
  if (blocks.length === 0) throw new Error(`docs/${page} has no ${language} under “${heading}”`);
  return blocks;
}

/** The cells of the last table under a heading, a row each, without its head. @throws if there is none */
export function rowsUnder(heading: string, page: string): string[][] {
  const tables = [...sectionOf(heading, page).matchAll(/^\|[-|]+\|\n((?:\|.*\n)+)/gm)];
  const rows = tables.at(-1)?.[1]?.trimEnd().split('\n') ?? [];
  if (rows.length === 0) throw new Error(`docs/${page} has no table under “${heading}”`);
  return rows.map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}
