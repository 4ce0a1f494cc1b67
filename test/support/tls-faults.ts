// The table of faults in docs/tls.md, as tests try it: each line for a kind of connection is what that connection says.

import { expect } from 'vitest';
import { rowsUnder } from './deploy-page.ts';

/** By the words of the table, what each sentence has to be; to be compared with `saidBy`. */
export function sentencesFor(where: 'Postgres' | 'RabbitMQ' | 'HTTP'): Record<string, unknown> {
  return Object.fromEntries(
    rowsUnder('When it fails', 'tls.md')
      .filter(([, places = '']) => places === 'all' || places.split(', ').includes(where))
      .map(([fault = '', , sentence = '']) => [fault, expect.stringMatching(patternOf(sentence)) as unknown]),
  );
}

/** Tries one after another, since a server shows one certificate at a time. Each resolves with the sentence that came. */
export async function saidBy(
  tries: Readonly<Record<string, () => Promise<string>>>,
): Promise<Record<string, string>> {
  const said: Record<string, string> = {};
  for (const [fault, attempt] of Object.entries(tries)) said[fault] = await attempt();
  return said;
}

/** `…` stands for any text. */
function patternOf(sentence: string): RegExp {
  const parts = sentence.replaceAll('`', '').split('…');
  return new RegExp(`^${parts.map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('.*')}$`);
}
