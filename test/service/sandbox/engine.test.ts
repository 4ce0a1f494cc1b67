// Real conversions with the installed ffmpeg, from one URL of a real server to another.

import { readFile, writeFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { findFfmpeg } from '../../../src/sandbox/engine/ffmpeg.ts';
import { createFolder } from '../../support/folder.ts';
import {
  factsOf,
  installed,
  longSample,
  makeLiveClip,
  programs,
  runFfmpeg,
  runningPrograms,
  sample,
  startMedia,
  WITHOUT_FFMPEG,
} from '../../support/media.ts';

const isMissing = programs === undefined;

describe.skipIf(isMissing)(`a conversion${WITHOUT_FFMPEG}`, () => {
  test.each([
    ['mp4', 'webm', { format: 'matroska,webm', codecs: ['vp9', 'opus'] }],
    ['mp4', 'mp3', { format: 'mp3', codecs: ['mp3'] }],
    ['webm', 'mp4', { format: 'mov,mp4,m4a,3gp,3g2,mj2', codecs: ['h264', 'aac'] }],
    ['mkv', 'avi', { format: 'avi', codecs: ['mpeg4', 'mp3'] }],
    ['avi', 'mkv', { format: 'matroska,webm', codecs: ['h264', 'aac'] }],
    ['mov', 'gif', { format: 'gif', codecs: ['gif'] }],
    ['gif', 'mov', { format: 'mov,mp4,m4a,3gp,3g2,mj2', codecs: ['h264'] }],
    ['mp3', 'wav', { format: 'wav', codecs: ['pcm_s16le'] }],
    ['wav', 'mp3', { format: 'mp3', codecs: ['mp3'] }],
  ] as const)('from %s to %s makes what its name says', async (from, to, expected) => {
    await using media = await startMedia();
    await sample(media, `in.${from}`);

    const conversion = await media.engine.convert(media.order(`in.${from}`, `out.${to}`));

    const facts = await factsOf(media.path(`out.${to}`));
    expect(facts).toMatchObject(expected);
    expect(facts.seconds).toBeGreaterThan(1.7);
    expect(facts.seconds).toBeLessThan(2.4);
    expect(conversion.mediaSeconds).toBeCloseTo(facts.seconds, 0);
    expect(conversion.outputBytes).toBe((await readFile(media.path(`out.${to}`))).length);
    expect(await media.leftBehind()).toEqual([]);
    expect(runningPrograms()).toEqual([]);
  });

  test('tells its progress as ffmpeg does: it rises, never falls, and stays below 100', async () => {
    await using media = await startMedia();
    await longSample(media, 'in.mp4', 40);
    const told: { percentage: number; remainingMs: number | undefined; elapsedMs: number }[] = [];
    const startedMs = performance.now();
    const onProgress = (percentage: number, remainingMs: number | undefined) =>
      told.push({ percentage, remainingMs, elapsedMs: performance.now() - startedMs });

    await media.engine.convert(media.order('in.mp4', 'out.webm', { onProgress }));

    const percentages = told.map(({ percentage }) => percentage);
    expect(percentages).toEqual(percentages.toSorted((a, b) => a - b));
    expect(percentages.at(-1)).toBe(99);
    const inBetween = new Set(percentages.filter((percentage) => percentage > 0 && percentage < 99));
    expect(inBetween.size).toBeGreaterThanOrEqual(3);
    expect(percentages.every((percentage) => Number.isInteger(percentage))).toBe(true);
    // At 2 % of the work, 98 % are left: 49 times of what it has taken.
    const wrong = told.filter(
      ({ percentage, remainingMs = -1, elapsedMs }) =>
        percentage >= 2 && (remainingMs < 0 || remainingMs > 50 * elapsedMs),
    );
    expect(wrong).toEqual([]);
  });

  test('can be done again, and the output is replaced', async () => {
    await using media = await startMedia();
    await sample(media, 'in.wav', 1);
    await writeFile(media.path('out.mp3'), 'of an earlier run');

    await media.engine.convert(media.order('in.wav', 'out.mp3'));
    await media.engine.convert(media.order('in.wav', 'out.mp3'));

    expect(await factsOf(media.path('out.mp3'))).toMatchObject({ format: 'mp3' });
  });

  test('of pictures with odd sides is made even', async () => {
    await using media = await startMedia();
    await runFfmpeg(['-f', 'lavfi', '-i', 'testsrc2=size=101x75:rate=5:duration=1', media.path('in.gif')]);

    await media.engine.convert(media.order('in.gif', 'out.mp4'));

    expect(await factsOf(media.path('out.mp4'))).toMatchObject({ codecs: ['h264'] });
  });

  test('of a recording that does not say how long it is works, without an estimate', async () => {
    await using media = await startMedia();
    await makeLiveClip(media.path('in.webm'), 1);
    let told = 0;

    const order = media.order('in.webm', 'out.mp4', { onProgress: () => void told++ });
    const { mediaSeconds } = await media.engine.convert(order);

    expect(mediaSeconds).toBeGreaterThan(0.8);
    expect(told).toBe(0);
  });
});

test('ffmpeg is missing where no folder has both of its programs', async () => {
  await using folder = await createFolder();
  await folder.write('ffmpeg', '#!/bin/sh\necho ffmpeg version 1.0\n');

  expect(await findFfmpeg([folder.path('.'), folder.path('nowhere')])).toBeUndefined();
});

describe.skipIf(isMissing)(`ffmpeg${WITHOUT_FFMPEG}`, () => {
  test('is found with its version', () => {
    expect(installed()).toEqual({
      ffmpeg: expect.stringMatching(/\/ffmpeg$/),
      ffprobe: expect.stringMatching(/\/ffprobe$/),
      version: expect.stringMatching(/^\S+$/),
    });
  });
});
