import { describe, expect, test } from 'vitest';
import {
  escapeInvisible,
  maskInvisible,
  maskInvisibleInColours,
  maskInvisibleInJson,
  maskInvisibleInLines,
} from '../../src/base/text/invisible-characters.ts';

/** A C1 control sequence, a bell, DEL, a direction mark, a line separator, and a format character of two units. */
const TRICKS = '\u009b2J\u0007\u007f\u202e\u2028\u{E0001}';

const INVISIBLE = /[^\P{C}\t\n]|[\p{Zl}\p{Zp}]/u;

describe('what cannot be seen', () => {
  test('is masked in text, where lines and our own colours may stay', () => {
    expect(maskInvisible(`a${TRICKS}\n\u001b[31mb`)).toBe('a�2J�������[31mb');
    expect(maskInvisibleInLines(`a\tb\n${TRICKS}\u001b[31m\r`)).toBe('a\tb\n�2J������[31m�');
    expect(maskInvisibleInColours(`\u001b[31mred\u001b[39m\n\u001b[2J\u001b]0;title\u0007`)).toBe(
      '\u001b[31mred\u001b[39m\n�[2J�]0;title�',
    );
  });

  test('is escaped in JSON, whose value stays', () => {
    const item = { [TRICKS]: [TRICKS, '\\u009b', 'ü 😀', 'a\nb'] };
    const json = escapeInvisible(JSON.stringify(item));
    expect(json).not.toMatch(INVISIBLE);
    expect(json).toContain('\\u009b2J\\u0007\\u007f\\u202e\\u2028\\udb40\\udc01');
    expect(json).toContain('ü 😀');
    expect(JSON.parse(json)).toEqual(item);
    const spaced = JSON.stringify(item, undefined, 2).replaceAll('\n', '\r\n\t');
    expect(JSON.parse(escapeInvisible(spaced))).toEqual(item);
  });

  test('is masked in JSON whose strings are printed, however it stands there', () => {
    const item = { msg: `a${TRICKS}\u001b[31m\r\b`, stack: 'line one\n\tline two', path: 'C:\\u001b' };
    expect(JSON.parse(maskInvisibleInJson(JSON.stringify(item)))).toEqual({
      msg: 'a�2J������[31m��',
      stack: 'line one\n\tline two',
      path: 'C:\\u001b',
    });
  });
});
