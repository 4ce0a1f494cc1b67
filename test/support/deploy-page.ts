// docs/deploy.md as its reader meets it: the commands that tests run as they stand there.

import { readFileSync } from 'node:fs';

const page = readFileSync(new URL('../../docs/deploy.md', import.meta.url), 'utf8');

/**
 * The blocks of code under a heading of the page, in order, without those under its subheadings.
 * @throws if there is no such heading, or no block under it: a test that runs nothing would pass
 */
export function commandsUnder(heading: string, language = 'sh'): string[] {
  const section = page.split(/^#+ /m).find((text) => text.startsWith(`${heading}\n`));
  const blocks = [...(section ?? '').matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms'))].map(
    ([, code = '']) => code,
  );
  if (blocks.length === 0) throw new Error(`docs/deploy.md has no ${language} under “${heading}”`);
  return blocks;
}
