// The table of faults in docs/tls.md, as tests try it: each line for a kind of connection is what that connection says.

import { expect } from 'vitest';
import { rowsUnder } from './deploy-page.ts';

/** @param tries by the words of the table; each resolves with the sentence that came */
export async function faultsFor(
  where: 'Postgres' | 'RabbitMQ' | 'HTTP',
  tries: Readonly<Record<string, () => Promise<string>>>,
): Promise<void> {
  const rows = rowsUnder('When it fails', 'tls.md').filter(
    ([, places = '']) => places === 'all' || places.split(', ').includes(where),
  );
  expect(Object.keys(tries)).toEqual(rows.map(([fault]) => fault));
  for (const [fault = '', , sentence = ''] of rows) {
    const said = await tries[fault]?.();
    expect(said, fault).toMatch(patternOf(sentence));
  }
}

/** `…` stands for any text. */
function patternOf(sentence: string): RegExp {
  const parts = sentence.replaceAll('`', '').split('…');
  return new RegExp(`^${parts.map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('.*')}$`);
}
