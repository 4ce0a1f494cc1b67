// docs/runbook.md as its reader meets it: the commands to look at, which stand before what they printed.

import { commandsUnder } from './deploy-page.ts';

/** Under the heading of a condition. @throws if there are none */
export const commandsOf = (condition: string): string[] =>
  commandsUnder(condition, 'console', 'runbook.md')
    .join('')
    .split('\n')
    .filter((line) => line.startsWith('$ '))
    .map((line) => line.slice(2));
