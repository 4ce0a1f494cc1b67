// What the log prints, in a process of its own: it writes to standard output.

import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';

/** A C1 control sequence, a bell, DEL, a direction mark, a line separator, and a format character of two units. */
const TRICKS = '\u009b2J\u0007\u007f\u202e\u2028\u{E0001}';

const INVISIBLE = /[^\P{C}\t\n]|[\p{Zl}\p{Zp}]/u;

describe('the log', () => {
  const log = fileURLToPath(new URL('../../src/base/log/log.ts', import.meta.url));
  const written = async (pretty: boolean): Promise<string> => {
    const script = `
      const { createLog } = await import(${JSON.stringify(log)});
      const tricks = ${JSON.stringify(`${TRICKS}\u001b[2J`)};
      createLog({ level: 'info', pretty: ${pretty} }).info({ reason: tricks, err: { message: tricks } }, tricks);`;
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script]);
    return stdout;
  };

  test.each([true, false])('shows no characters that control a terminal; pretty: %j', async (pretty) => {
    const text = await written(pretty);
    expect(text).toContain(pretty ? '�2J' : '\\u009b2J');
    expect(text).not.toMatch(INVISIBLE);
  });
});
