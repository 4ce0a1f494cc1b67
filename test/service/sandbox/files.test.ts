import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { startFileServer } from '../../../src/sandbox/files/file-server.ts';
import { MAX_BYTES, put, startTestFiles } from '../../support/files.ts';
import { silentLog } from '../../support/media.ts';
import { openRaw } from '../../support/raw-http.ts';
import { waitFor } from '../../support/waits.ts';

describe('a file', () => {
  test('is served whole, with its type and length', async () => {
    await using files = await startTestFiles();

    const answer = await fetch(files.at('clip.mp4'));

    expect(answer.status).toBe(200);
    expect(await answer.text()).toBe('0123456789');
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'content-type': 'video/mp4',
      'content-length': '10',
      'accept-ranges': 'bytes',
      'x-content-type-options': 'nosniff',
    });
  });

  test('that is no longer the one that was meant is not served', async () => {
    await using files = await startTestFiles();

    const answer = await fetch(files.at('clip.mp4'), { headers: { 'If-Match': '"another"' } });

    expect([answer.status, await answer.text()]).toEqual([412, '']);
  });

  test('of unknown type is served as bytes, which no browser runs', async () => {
    await using files = await startTestFiles();
    await writeFile(join(files.folder, 'page.html'), '<script>');

    const answer = await fetch(files.at('page.html'));

    expect(answer.headers.get('content-type')).toBe('application/octet-stream');
    expect(await answer.text()).toBe('<script>');
  });

  test('has a head of its own', async () => {
    await using files = await startTestFiles();

    const answer = await fetch(files.at('clip.mp4'), { method: 'HEAD' });

    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-length')).toBe('10');
    expect(await answer.text()).toBe('');
  });

  test.each([
    ['bytes=2-4', '234', 'bytes 2-4/10'],
    ['bytes=7-', '789', 'bytes 7-9/10'],
    ['bytes=-2', '89', 'bytes 8-9/10'],
    ['bytes=5-99', '56789', 'bytes 5-9/10'],
  ])('is served in part: %s', async (range, content, told) => {
    await using files = await startTestFiles();

    const answer = await fetch(files.at('clip.mp4'), { headers: { Range: range } });

    expect(answer.status).toBe(206);
    expect(answer.headers.get('content-range')).toBe(told);
    expect(await answer.text()).toBe(content);
  });

  test('has no part beyond its end', async () => {
    await using files = await startTestFiles();

    const answer = await fetch(files.at('clip.mp4'), { headers: { Range: 'bytes=10-' } });

    expect(answer.status).toBe(416);
    expect(answer.headers.get('content-range')).toBe('bytes */10');
  });

  test('that is not there is 404, in the form of all errors', async () => {
    await using files = await startTestFiles();

    const answer = await fetch(files.at('other.mp4'));

    expect(answer.status).toBe(404);
    expect(await answer.json()).toEqual({ error: 'not_found', message: 'there is no such file' });
  });

  test('is neither posted nor deleted', async () => {
    await using files = await startTestFiles();

    for (const method of ['POST', 'DELETE', 'PATCH']) {
      const answer = await fetch(files.at('clip.mp4'), { method });
      expect(answer.status).toBe(405);
      expect(answer.headers.get('allow')).toBe('GET, HEAD, PUT');
    }
    expect(await readdir(files.folder)).toEqual(['clip.mp4']);
  });
});

describe('an upload', () => {
  test('makes a file, and the next one replaces it', async () => {
    await using files = await startTestFiles();

    const first = await put(files.at('out.webm'), 'first');
    const second = await put(files.at('out.webm'), 'second');

    expect([first.status, first.headers.get('location')]).toEqual([201, '/out.webm']);
    expect(second.status).toBe(204);
    expect(await (await fetch(files.at('out.webm'))).text()).toBe('second');
    expect(await readdir(files.folder)).toEqual(['clip.mp4', 'out.webm']);
  });

  test('of the largest size is taken, and one of a byte more is 413 and leaves nothing', async () => {
    await using files = await startTestFiles();

    expect((await put(files.at('large'), 'x'.repeat(MAX_BYTES))).status).toBe(201);
    const refused = await put(files.at('larger'), 'x'.repeat(MAX_BYTES + 1));

    expect(refused.status).toBe(413);
    expect(refused.headers.get('connection')).toBe('close');
    expect(await readdir(files.folder)).toEqual(['clip.mp4', 'large']);
  });

  test('that grows too large without having said so is 413, and what was there stays', async () => {
    await using files = await startTestFiles();
    using connection = await openRaw(files.server.port);

    connection.write('PUT /clip.mp4 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n');
    connection.write(`${(MAX_BYTES + 1).toString(16)}\r\n${'x'.repeat(MAX_BYTES + 1)}\r\n`);

    expect(await connection.replies()).toMatchObject([
      { status: 413, body: { error: 'payload_too_large', message: 'the file is too large' } },
    ]);
    await connection.closed;
    expect(await readFile(join(files.folder, 'clip.mp4'), 'utf8')).toBe('0123456789');
    expect(await readdir(files.folder)).toEqual(['clip.mp4']);
  });

  test('is not seen before it is whole, and not at all if it breaks off', async () => {
    await using files = await startTestFiles();
    using connection = await openRaw(files.server.port);

    connection.write('PUT /clip.mp4 HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf');
    const [part] = await waitFor(async () => {
      const found = (await readdir(files.folder)).filter((name) => name !== 'clip.mp4');
      expect(found).toHaveLength(1);
      return found;
    });

    expect(await (await fetch(files.at('clip.mp4'))).text()).toBe('0123456789');
    expect((await fetch(files.at(part ?? ''))).status).toBe(400);
    connection.reset();
    await waitFor(async () => expect(await readdir(files.folder)).toEqual(['clip.mp4']));
    expect(await (await fetch(files.at('clip.mp4'))).text()).toBe('0123456789');
  });

  test('that is under way when the server stops leaves nothing behind', async () => {
    await using files = await startTestFiles();
    using connection = await openRaw(files.server.port);
    connection.write('PUT /out.webm HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf');
    await waitFor(async () => expect(await readdir(files.folder)).toHaveLength(2));

    await files.server.stop();

    expect(await readdir(files.folder)).toEqual(['clip.mp4']);
  });

  test('of a part is 400: it would be taken for the whole', async () => {
    await using files = await startTestFiles();

    const answer = await put(files.at('clip.mp4'), 'ab', { 'Content-Range': 'bytes 0-1/10' });

    expect(answer.status).toBe(400);
    expect(await readFile(join(files.folder, 'clip.mp4'), 'utf8')).toBe('0123456789');
  });

  test('onto a folder is 409', async () => {
    await using files = await startTestFiles();
    await mkdir(join(files.folder, 'sub'));

    expect((await put(files.at('sub'), 'x')).status).toBe(409);
  });
});

test('a port that is taken is an error at the start', async () => {
  await using files = await startTestFiles();
  const { folder, server } = files;

  await expect(
    startFileServer({ host: '127.0.0.1', port: server.port, folder, maxBytes: MAX_BYTES, log: silentLog }),
  ).rejects.toMatchObject({ code: 'EADDRINUSE' });
});
