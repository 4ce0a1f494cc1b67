// Limits of a conversion, and that nothing is left behind when one is exceeded.

import { chmod, stat } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import type { ConversionErrorCode } from '../../../src/sandbox/engine/errors.ts';
import type { EngineLimits } from '../../../src/sandbox/engine/engine.ts';
import { createFolder } from '../../support/folder.ts';
import {
  factsOf,
  failureOf,
  longSample,
  makeLiveClip,
  makeStill,
  programs,
  runningPrograms,
  sample,
  startMedia,
  WITHOUT_FFMPEG,
} from '../../support/media.ts';
import { startOrigin } from '../../support/origin.ts';

async function mediaWithClip(limits: Partial<EngineLimits>, seconds: number, name = 'in.mp4') {
  const media = await startMedia({ limits });
  await sample(media, name, seconds);
  return media;
}

async function mediaWithLongClip(limits: Partial<EngineLimits> = {}) {
  const media = await startMedia({ limits });
  await longSample(media, 'in.mp4', 60);
  return media;
}

const failure = (code: ConversionErrorCode, message: string) => ({
  name: 'ConversionError',
  code,
  message,
  left: [],
});

describe.skipIf(programs === undefined)(`a limit${WITHOUT_FFMPEG}`, () => {
  test('on the input’s size is kept', async () => {
    await using media = await mediaWithClip({ inputBytes: 5_000 }, 1);

    const message = 'the input is larger than 5000 bytes';
    expect(await failureOf(media, media.order('in.mp4', 'out.webm'))).toEqual(
      failure('INPUT_TOO_LARGE', message),
    );
  });

  test('on the input’s length is kept', async () => {
    await using media = await mediaWithClip({ mediaSeconds: 2 }, 4);

    const message = 'the input plays longer than 2 seconds';
    expect(await failureOf(media, media.order('in.mp4', 'out.webm'))).toEqual(
      failure('INPUT_TOO_LONG', message),
    );
  });

  test('on the input’s length is kept even if the input does not say how long it is', async () => {
    await using media = await startMedia({ limits: { mediaSeconds: 2 } });
    await makeLiveClip(media.path('in.webm'), 6);

    const message = 'the input plays longer than 2 seconds';
    expect(await failureOf(media, media.order('in.webm', 'out.mp4'))).toEqual(
      failure('INPUT_TOO_LONG', message),
    );
  });

  test('on the input’s picture is checked by ffprobe, however small the file', async () => {
    await using media = await startMedia({ programs: { ffmpeg: '/bin/false' } });
    await makeStill(media.path('in.mp4'), '8192x4320');
    expect((await stat(media.path('in.mp4'))).size).toBeLessThan(600_000);

    const message = 'the input cannot be read: its picture has more pixels than 4096 × 2304';
    expect(await failureOf(media, media.order('in.mp4', 'out.webm'))).toEqual(
      failure('INVALID_INPUT', message),
    );
  });

  test('on the picture lets 4K pass, lying and upright', async () => {
    await using media = await startMedia();

    for (const size of ['4096x2160', '2160x3840']) {
      await makeStill(media.path(`${size}.mp4`), size);
      await media.engine.convert(media.order(`${size}.mp4`, `${size}.webm`));
      expect((await factsOf(media.path(`${size}.webm`))).codecs).toEqual(['vp9']);
    }
  });

  test.skipIf(process.platform !== 'linux')('on memory fails the job with a reason', async () => {
    await using folder = await createFolder();
    const greedy = 'dd if=/dev/zero of=/dev/null bs=3G count=1';
    const ffmpeg = await folder.write(
      'ffmpeg',
      `#!/bin/sh\n${greedy} || { echo "Cannot allocate memory" >&2; exit 1; }\n`,
    );
    await chmod(ffmpeg, 0o700);
    await using media = await startMedia({ programs: { ffmpeg } });
    await sample(media, 'in.mp4', 1);

    const message = 'the input cannot be converted: it takes more memory than a conversion may';
    expect(await failureOf(media, media.order('in.mp4', 'out.webm'))).toEqual(
      failure('INVALID_INPUT', message),
    );
  });

  test('on the output’s size is kept', async () => {
    await using media = await mediaWithClip({ inputBytes: 40_000 }, 5, 'in.mp3');

    const message = 'the output would be larger than 160000 bytes';
    expect(await failureOf(media, media.order('in.mp3', 'out.wav'))).toEqual(
      failure('OUTPUT_UNWRITABLE', message),
    );
  });

  test('on the time of the conversion is kept, and ffmpeg is gone', async () => {
    await using media = await mediaWithLongClip({ runMs: 400 });

    const message = 'the conversion took longer than 0.4 seconds';
    expect(await failureOf(media, media.order('in.mp4', 'out.webm'))).toEqual(failure('TIMED_OUT', message));
  });

  test('on the time of fetching is kept', async () => {
    await using media = await startMedia({ limits: { fetchMs: 200 } });
    await using silent = await startOrigin(() => {});

    const order = media.order('in.mp4', 'out.webm', { inputUrl: silent.url });
    const message = 'the input did not arrive within 0.2 seconds';
    expect(await failureOf(media, order)).toEqual(failure('INPUT_UNREACHABLE', message));
  });

  test('on the time of putting is kept', async () => {
    await using media = await mediaWithClip({ uploadMs: 200 }, 1);
    await using silent = await startOrigin((request) => void request.resume());

    const order = media.order('in.mp4', 'out.mp3', { outputUrl: silent.url });
    const message = 'the output was not taken within 0.2 seconds';
    expect(await failureOf(media, order)).toEqual(failure('OUTPUT_UNWRITABLE', message));
  });
});

describe.skipIf(programs === undefined)(`a conversion${WITHOUT_FFMPEG}`, () => {
  test('that is cancelled ends ffmpeg, and fails for the reason that was given', async () => {
    await using media = await mediaWithLongClip();
    const cancelled = new AbortController();
    const running: string[] = [];

    const order = media.order('in.mp4', 'out.webm', {
      signal: cancelled.signal,
      onProgress: () => {
        running.push(...runningPrograms());
        cancelled.abort(new Error('we are going home'));
      },
    });
    expect(await failureOf(media, order)).toMatchObject({ message: 'we are going home', left: [] });
    expect(running).toContain('ffmpeg');
  });

  test('that is cancelled before it begins asks nobody', async () => {
    await using media = await startMedia();
    await using origin = await startOrigin((_request, response) => response.end());
    const signal = AbortSignal.abort(new Error('too late'));

    const order = media.order('in.mp4', 'out.webm', { inputUrl: origin.url, signal });
    expect(await failureOf(media, order)).toMatchObject({ message: 'too late', left: [] });
    expect(origin.connections()).toBe(0);
  });

  test('whose listener fails ends ffmpeg, and fails in the same way', async () => {
    await using media = await mediaWithLongClip();
    const order = media.order('in.mp4', 'out.webm', {
      onProgress: () => {
        throw new Error('a bug of the listener');
      },
    });
    expect(await failureOf(media, order)).toMatchObject({ message: 'a bug of the listener', left: [] });
  });

  test('from or to a format that nobody knows is refused before anything is fetched', async () => {
    await using media = await startMedia();

    for (const [input, output] of [
      ['in.mp4', 'out.flv'],
      ['in.m3u8', 'out.mp4'],
      ['in.mp4', 'out.constructor'],
    ] as const) {
      await expect(media.engine.convert(media.order(input, output))).rejects.toMatchObject({
        code: 'UNSUPPORTED_FORMAT',
        message: expect.stringMatching(/^the supported formats are mp4, webm, mkv, /),
      });
    }
  });

  test.each(['http://10.0.0.1/', 'http://[::ffff:127.0.0.1]/', 'file:///etc/passwd'])(
    'from or to %s is refused',
    async (url) => {
      await using media = await mediaWithClip({}, 1);

      const from = media.order('in.mp4', 'out.mp3', { inputUrl: url });
      expect(await failureOf(media, from)).toMatchObject({ code: 'INPUT_UNREACHABLE', left: [] });
      const to = media.order('in.mp4', 'out.mp3', { outputUrl: url });
      expect(await failureOf(media, to)).toMatchObject({ code: 'OUTPUT_UNWRITABLE', left: [] });
    },
  );

  test('that this ffmpeg was not built for is our fault and not the input’s', async () => {
    await using folder = await createFolder();
    const ffmpeg = await folder.write(
      'ffmpeg',
      '#!/bin/sh\necho "Unknown encoder \'libx264\'" >&2\nexit 1\n',
    );
    await chmod(ffmpeg, 0o700);
    await using media = await startMedia({ programs: { ffmpeg } });
    await sample(media, 'in.webm', 1);

    const message = 'the converter cannot do this at the moment';
    const order = media.order('in.webm', 'out.mp4');
    expect(await failureOf(media, order)).toEqual(failure('INTERNAL', message));
  });

  test('whose output is refused says so', async () => {
    await using media = await mediaWithClip({}, 1);
    await using origin = await startOrigin((request, response) => {
      request.resume();
      request.once('end', () => response.writeHead(403).end());
    });

    const order = media.order('in.mp4', 'out.mp3', { outputUrl: origin.url });
    const message = "the output's host answered with status 403";
    expect(await failureOf(media, order)).toEqual(failure('OUTPUT_UNWRITABLE', message));
  });
});
