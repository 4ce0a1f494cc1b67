// Errors for inputs that cannot be converted, and that nothing is left behind.

import { copyFile, readFile, truncate, writeFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { makeCorruptClip } from '../../../src/sandbox/files/clips.ts';
import { failureOf, programs, runFfmpeg, sample, startMedia, WITHOUT_FFMPEG } from '../../support/media.ts';
import { startOrigin } from '../../support/origin.ts';

const invalid = (message: unknown) => ({
  name: 'ConversionError',
  code: 'INVALID_INPUT',
  message,
  left: [],
});

describe.skipIf(programs === undefined)(`an input that cannot be used${WITHOUT_FFMPEG}`, () => {
  const CORRUPT = 'the input cannot be read: it is corrupted or no media file';

  test('because it is corrupt fails with INVALID_INPUT, and nothing is put', async () => {
    await using media = await startMedia();
    await sample(media, 'clip.mp4');
    await makeCorruptClip({ clip: media.path('clip.mp4'), file: media.path('corrupt.mp4') });

    expect(await failureOf(media, media.order('corrupt.mp4', 'out.webm'))).toEqual(invalid(CORRUPT));
    await expect(readFile(media.path('out.webm'))).rejects.toMatchObject({ code: 'ENOENT' });
  });

  test('because it was cut off fails', async () => {
    await using media = await startMedia();
    await sample(media, 'clip.mp4');
    await truncate(media.path('clip.mp4'), 20_000);

    const message = 'the input cannot be read: its index is missing, as in a file that was cut off';
    expect(await failureOf(media, media.order('clip.mp4', 'out.webm'))).toEqual(invalid(message));
  });

  test('because it was cut off behind its index fails, and the message says where', async () => {
    await using media = await startMedia();
    await sample(media, 'whole.mp4', 4);
    const indexFirst = ['-movflags', '+faststart', media.path('clip.mp4')];
    await runFfmpeg(['-i', media.path('whole.mp4'), '-c', 'copy', ...indexFirst]);
    await truncate(media.path('clip.mp4'), 40_000);

    const failure = await failureOf(media, media.order('clip.mp4', 'out.webm'));
    const where = /^the input is damaged: only its first \d\.\d seconds can be read$/;
    expect(failure).toEqual(invalid(expect.stringMatching(where)));
  });

  test('because its content is damaged behind a sound head fails', async () => {
    await using media = await startMedia();
    await sample(media, 'clip.mkv', 4);
    const bytes = await readFile(media.path('clip.mkv'));
    await writeFile(media.path('clip.mkv'), bytes.fill(0x55, 2_000));

    const failure = await failureOf(media, media.order('clip.mkv', 'out.mp4'));
    expect(failure).toEqual(invalid('the input is damaged: only its first 0.0 seconds can be read'));
  });

  test('because it is empty fails', async () => {
    await using media = await startMedia();
    await writeFile(media.path('empty.mp4'), '');

    expect(await failureOf(media, media.order('empty.mp4', 'out.webm'))).toEqual(
      invalid('the input is empty'),
    );
  });

  test.each(['mp4', 'mp3', 'gif', 'mkv'])('because it is text, called %s, fails', async (format) => {
    await using media = await startMedia();
    await writeFile(media.path(`text.${format}`), 'This is no clip.\n'.repeat(1_000));

    expect(await failureOf(media, media.order(`text.${format}`, 'out.webm'))).toEqual(invalid(CORRUPT));
  });

  test('that has another format than the job says fails, and the message names the format', async () => {
    await using media = await startMedia();
    await sample(media, 'clip.webm', 1);
    await copyFile(media.path('clip.webm'), media.path('clip.mp4'));

    expect(await failureOf(media, media.order('clip.mp4', 'out.webm'))).toEqual(
      invalid('the input is not mp4, as the job says, but matroska or webm'),
    );
  });

  test('because it has no sound for a format of sound fails', async () => {
    await using media = await startMedia();
    await sample(media, 'clip.gif', 1);

    const failure = await failureOf(media, media.order('clip.gif', 'out.mp3'));
    expect(failure).toEqual(invalid('the input has no sound that mp3 could hold'));
  });

  test('because it has no picture for a format of pictures fails', async () => {
    await using media = await startMedia();
    await sample(media, 'clip.wav', 1);

    const failure = await failureOf(media, media.order('clip.wav', 'out.gif'));
    expect(failure).toEqual(invalid('the input has no picture that gif could hold'));
  });

  test('because it claims a picture that no machine could hold fails at once', async () => {
    await using media = await startMedia();
    const head = Buffer.from('GIF89a\xff\xff\xff\xff\x80\0\0\0\0\0\xff\xff\xff', 'latin1');
    const image = Buffer.from(',\0\0\0\0\xff\xff\xff\xff\0\x02\x02\x4c\x01\0;', 'latin1');
    await writeFile(media.path('huge.gif'), Buffer.concat([head, image]));

    const failure = await failureOf(media, media.order('huge.gif', 'out.mp4'));
    expect(failure).toEqual(invalid(expect.stringMatching(/^the input cannot be (read|converted): /)));
  });

  test.each([
    ['an HLS playlist', '#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nURL\n#EXT-X-ENDLIST\n'],
    ['a list of files', "ffconcat version 1.0\nfile 'URL'\n"],
    ['an SDP', 'v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video PORT RTP/AVP 96\n'],
    [
      'a DASH manifest',
      '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011"><Period><BaseURL>URL</BaseURL></Period></MPD>',
    ],
  ])('because it is %s opens nothing that it names', async (_what, text) => {
    await using media = await startMedia();
    await using named = await startOrigin((_request, response) => response.end());
    await sample(media, 'other.mp4', 1);

    for (const url of [
      `${named.url}/clip.mp4`,
      `file://${media.path('other.mp4')}`,
      media.path('other.mp4'),
    ]) {
      const list = text.replaceAll('URL', url).replaceAll('PORT', String(named.port));
      await writeFile(media.path('list.mp4'), list);
      const failure = await failureOf(media, media.order('list.mp4', 'out.webm'));
      expect(failure).toEqual(invalid(expect.stringMatching(/^the input cannot be read: [^/]*$/)));
    }
    expect(named.connections()).toBe(0);
  });
});
