// The simulated engine: everything is real except the conversion.

import { readFile, writeFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { beginsLikeMedia } from '../../../src/sandbox/engine/containers.ts';
import { makeCorruptClip, makeStandInClip } from '../../../src/sandbox/files/clips.ts';
import { failureOf, startMedia } from '../../support/media.ts';

const simulated = { stepMs: 5 };

test('the input is put to the output unchanged, and the progress is told in tens', async () => {
  await using media = await startMedia({ simulated });
  await makeStandInClip({ file: media.path('in.mp4') });
  const told: number[] = [];
  const onProgress = (percentage: number, remainingMs: number | undefined) => {
    told.push(percentage);
    expect(remainingMs).toBeLessThanOrEqual(50);
  };

  const conversion = await media.engine.convert(media.order('in.mp4', 'out.webm', { onProgress }));

  const input = await readFile(media.path('in.mp4'));
  expect(await readFile(media.path('out.webm'))).toEqual(input);
  expect(conversion).toEqual({ outputBytes: input.length, mediaSeconds: 1 });
  expect(told).toEqual([0, 10, 20, 30, 40, 50, 60, 70, 80, 90]);
  expect(await media.leftBehind()).toEqual([]);
});

test('it says what it is', async () => {
  await using media = await startMedia({ simulated });

  expect(media.engine).toMatchObject({ kind: 'simulated', version: 'none' });
});

test('a corrupt, an empty and a text file are invalid here, too', async () => {
  await using media = await startMedia({ simulated });
  await makeStandInClip({ file: media.path('in.mp4') });
  await makeCorruptClip({ clip: media.path('in.mp4'), file: media.path('corrupt.mp4') });
  await writeFile(media.path('empty.mp4'), '');
  await writeFile(media.path('text.mp4'), 'This is no clip.');

  for (const name of ['corrupt.mp4', 'empty.mp4', 'text.mp4']) {
    const failure = await failureOf(media, media.order(name, 'out.webm'));
    expect(failure).toMatchObject({ name: 'ConversionError', code: 'INVALID_INPUT', left: [] });
  }
});

test('it keeps the limits on size and time, and can be cancelled', async () => {
  await using small = await startMedia({ simulated, limits: { inputBytes: 1_000 } });
  await makeStandInClip({ file: small.path('in.mp4') });
  const tooLarge = await failureOf(small, small.order('in.mp4', 'out.webm'));
  expect(tooLarge).toMatchObject({ code: 'INPUT_TOO_LARGE', left: [] });

  await using slow = await startMedia({ simulated: { stepMs: 10_000 }, limits: { runMs: 50 } });
  await makeStandInClip({ file: slow.path('in.mp4') });
  const late = await failureOf(slow, slow.order('in.mp4', 'out.webm'));
  expect(late).toMatchObject({ code: 'TIMED_OUT', left: [] });

  const leaving = new AbortController();
  const onProgress = () => leaving.abort(new Error('we are going home'));
  const order = slow.order('in.mp4', 'out.webm', { signal: leaving.signal, onProgress });
  expect(await failureOf(slow, order)).toMatchObject({ message: 'we are going home', left: [] });
});

test.each([
  ['mp4', '\0\0\0\x20ftypisom', true],
  ['old mov', '\0\0\0\x08wide\0\0\0\0', true],
  ['webm and mkv', '\x1a\x45\xdf\xa3\0\0\0\0', true],
  ['avi', 'RIFF\0\0\0\0AVI ', true],
  ['wav', 'RIFF\0\0\0\0WAVE', true],
  ['mp3 with tags', 'ID3\x04\0', true],
  ['mp3 without', '\xff\xfb\x90\x64', true],
  ['gif', 'GIF89a', true],
  ['another RIFF', 'RIFF\0\0\0\0WEBP', false],
  ['a byte order mark', '\xff\xfea\0b\0', false],
  ['text', 'hello, there', false],
  ['a playlist', '#EXTM3U\n#EXT', false],
  ['nothing', '', false],
])('by its first bytes: %s', (_what, head, expected) => {
  expect(beginsLikeMedia(Buffer.from(head, 'latin1'))).toBe(expected);
});
