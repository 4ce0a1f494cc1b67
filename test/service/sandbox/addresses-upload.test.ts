import type { IncomingHttpHeaders } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { createAddresses } from '../../../src/sandbox/addresses/addresses.ts';
import { upload, type UploadOptions } from '../../../src/sandbox/addresses/upload.ts';
import { createFolder } from '../../support/folder.ts';
import { startOrigin } from '../../support/origin.ts';

const FOREVER = new AbortController().signal;

async function putTo(url: string, options: Partial<UploadOptions> & { content?: string } = {}) {
  await using folder = await createFolder();
  const addresses = createAddresses({ allowLocal: true });
  const file = await folder.write('output', options.content ?? 'converted');
  const given = { url, file, mediaType: 'video/webm', addresses, timeoutMs: 10_000, signal: FOREVER };
  try {
    return await upload({ ...given, ...options });
  } finally {
    await addresses.close();
  }
}

const unreachable = (message: string) => ({ name: 'TransferError', code: 'unreachable', message });

describe('an output', () => {
  test('is put in one piece, with its length and type', async () => {
    let taken: { headers: IncomingHttpHeaders; body: string } | undefined;
    await using origin = await startOrigin(async (request, response) => {
      const body = await buffer(request);
      taken = { headers: request.headers, body: body.toString() };
      response.writeHead(201).end();
    });

    expect(await putTo(`${origin.url}/out.webm`)).toBe(9);
    expect(origin.asked).toEqual(['PUT /out.webm']);
    expect(taken).toMatchObject({
      headers: { 'content-length': '9', 'content-type': 'video/webm' },
      body: 'converted',
    });
    expect(taken?.headers).not.toHaveProperty('transfer-encoding');
  });

  test.each([301, 302, 303, 307, 308])('is not put anywhere else when a %i asks for it', async (status) => {
    await using elsewhere = await startOrigin((_request, response) => response.end());
    await using origin = await startOrigin((request, response) => {
      request.resume();
      response.writeHead(status, { Location: elsewhere.url }).end();
    });

    await expect(putTo(origin.url)).rejects.toMatchObject(
      unreachable(`the output's host answered with status ${status}`),
    );
    expect(elsewhere.connections()).toBe(0);
  });

  test('that is refused before it was read is refused', async () => {
    await using origin = await startOrigin((_request, response) => {
      response.writeHead(403, { Connection: 'close' }).end();
    });

    await expect(putTo(origin.url, { content: 'x'.repeat(1_000_000) })).rejects.toMatchObject({
      name: 'TransferError',
      code: 'unreachable',
    });
  });

  test('that is never acknowledged has its time', async () => {
    await using origin = await startOrigin((request) => void request.resume());

    await expect(putTo(origin.url, { timeoutMs: 200 })).rejects.toMatchObject(
      unreachable('the output was not taken within 0.2 seconds'),
    );
  });

  test('is given up when it is cancelled', async () => {
    const cancelled = new AbortController();
    await using origin = await startOrigin(() => cancelled.abort(new Error('no longer wanted')));

    await expect(putTo(origin.url, { signal: cancelled.signal })).rejects.toThrow('no longer wanted');
  });
});

test('an address that may not be used is not asked, though it could be when the job was made', async () => {
  await expect(putTo('http://10.0.0.1/out.webm')).rejects.toMatchObject(
    unreachable("the output's address must not name a private, local or reserved host"),
  );
});
