// What `tallyhook doctor` prints: a line for each finding on a terminal, a JSON object where it is piped.

import type { Format, Io, Paint } from '../../terminal/io.ts';
import { terminalWidth } from '../../terminal/table.ts';
import { wrap } from '../../terminal/text-width.ts';
import type { Finding } from './finding.ts';

const COLOURS = { ok: 'green', warning: 'yellow', failed: 'red', skipped: 'dim' } as const satisfies Record<
  Finding['result'],
  Format
>;
const RESULT_WIDTH = 9;
const CHECK_WIDTH = 12;
const INDENT = ' '.repeat(RESULT_WIDTH + CHECK_WIDTH);

export function printFinding(io: Io, finding: Finding, { isJson }: { isJson: boolean }): Promise<void> {
  if (isJson) return io.putJson(finding);
  return finding.result === 'skipped'
    ? Promise.resolve()
    : io.put(`${linesOf(finding, { columns: terminalWidth(io), paint: io.paint })}\n`);
}

/** The result is a word, and not only a colour. */
export function linesOf(
  { check, result, found, mend }: Finding,
  { columns, paint }: { columns: number; paint: Paint },
): string {
  const room = Math.max(INDENT.length, columns - INDENT.length);
  const [first = '', ...rest] = wrap(found, room);
  const head = `${paint(COLOURS[result], result.padEnd(RESULT_WIDTH))}${paint('bold', check.padEnd(CHECK_WIDTH))}${first}`;
  const mending =
    mend === undefined ? [] : `to mend it: ${mend}`.split('\n').flatMap((line) => wrap(line, room));
  return [head, ...[...rest, ...mending].map((line) => INDENT + line)].join('\n');
}

/** `10 ok, 1 warning, 1 failed; not checked: bytes, method` */
export function sumOf(findings: readonly Finding[]): string {
  const counts = (['ok', 'warning', 'failed'] as const).flatMap((result) => {
    const times = findings.filter((finding) => finding.result === result).length;
    return times === 0 ? [] : [`${times} ${result === 'warning' && times > 1 ? 'warnings' : result}`];
  });
  const not = findings.filter(({ result }) => result === 'skipped').map(({ check }) => check);
  return [counts.join(', '), ...(not.length === 0 ? [] : [`not checked: ${not.join(', ')}`])].join('; ');
}
