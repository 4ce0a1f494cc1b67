import { readdir, readFile, writeFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { makeClips } from '../../../src/sandbox/command/clips.ts';
import { FORMAT_NAMES } from '../../../src/sandbox/engine/formats.ts';
import {
  isStandInClip,
  makeCorruptClip,
  makeSampleClip,
  makeStandInClip,
} from '../../../src/sandbox/files/clips.ts';
import { createFolder } from '../../support/folder.ts';
import { factsOf, installed, programs, WITHOUT_FFMPEG } from '../../support/media.ts';

describe.skipIf(programs === undefined)(`a sample clip${WITHOUT_FFMPEG}`, () => {
  test('has picture and sound, and the length that was asked for', async () => {
    await using folder = await createFolder();
    const file = folder.path('clip.mp4');

    await makeSampleClip({ programs: installed(), file, seconds: 3 });

    const facts = await factsOf(file);
    expect(facts).toMatchObject({ format: 'mov,mp4,m4a,3gp,3g2,mj2', codecs: ['h264', 'aac'] });
    expect(facts.seconds).toBeCloseTo(3, 1);
    expect(await readdir(folder.path('.'))).toEqual(['clip.mp4']);
  });

  test.each(FORMAT_NAMES)('can be made as %s', async (format) => {
    await using folder = await createFolder();
    const file = folder.path(`clip.${format}`);

    await makeSampleClip({ programs: installed(), file, seconds: 1 });

    expect((await factsOf(file)).codecs.length).toBeGreaterThan(0);
  });

  test('that cannot be made leaves the old one', async () => {
    await using folder = await createFolder();
    await writeFile(folder.path('clip.mp4'), 'the old one');

    await expect(
      makeSampleClip({ programs: installed(), file: folder.path('clip.mp4'), seconds: -1 }),
    ).rejects.toThrow('ffmpeg could not make the clip');
    expect(await readFile(folder.path('clip.mp4'), 'utf8')).toBe('the old one');
    expect(await readdir(folder.path('.'))).toEqual(['clip.mp4']);
  });

  test('replaces one that stood in while there was no ffmpeg', async () => {
    await using folder = await createFolder();
    await makeClips({ folder: folder.path('.'), programs: undefined });

    await makeClips({ folder: folder.path('.'), programs: installed() });

    expect(await isStandInClip(folder.path('sample.mp4'))).toBe(false);
    expect((await readFile(folder.path('corrupt.mp4'))).length).toBe(
      (await readFile(folder.path('sample.mp4'))).length,
    );
  });
});

test('a corrupt clip is as long as the one it is made of, and does not begin like it', async () => {
  await using folder = await createFolder();
  await makeStandInClip({ file: folder.path('clip.mp4') });

  await makeCorruptClip({ clip: folder.path('clip.mp4'), file: folder.path('corrupt.mp4') });

  const [clip, corrupt] = await Promise.all(
    ['clip.mp4', 'corrupt.mp4'].map((name) => readFile(folder.path(name))),
  );
  expect(corrupt?.length).toBe(clip?.length);
  expect(clip?.toString('latin1', 4, 8)).toBe('ftyp');
  expect(corrupt?.toString('latin1', 4, 8)).toBe('\0\0\0\0');
});

test('a clip that stood in while there was no ffmpeg is known for it', async () => {
  await using folder = await createFolder();
  await makeStandInClip({ file: folder.path('clip.mp4') });
  await writeFile(folder.path('other.mp4'), 'another one');

  expect(await isStandInClip(folder.path('clip.mp4'))).toBe(true);
  expect(await isStandInClip(folder.path('other.mp4'))).toBe(false);
  expect(await isStandInClip(folder.path('absent.mp4'))).toBe(false);
});
