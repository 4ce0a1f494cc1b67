import { readFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { describe, expect, test } from 'vitest';
import { createAddresses } from '../../../src/sandbox/addresses/addresses.ts';
import { download, type DownloadOptions } from '../../../src/sandbox/addresses/download.ts';
import { asTransferError } from '../../../src/sandbox/addresses/transfer-error.ts';
import { selfSignedCertificate } from '../../support/certificate.ts';
import { createFolder } from '../../support/folder.ts';
import { startOrigin } from '../../support/origin.ts';

const FOREVER = new AbortController().signal;
const LIMIT_BYTES = 1_000;

async function fetchFrom(url: string, options: Partial<DownloadOptions> = {}) {
  await using folder = await createFolder();
  const addresses = createAddresses({ allowLocal: true });
  const file = folder.path('input');
  const given = { url, file, addresses, maxBytes: LIMIT_BYTES, timeoutMs: 10_000, signal: FOREVER };
  try {
    const bytes = await download({ ...given, ...options });
    return { bytes, content: await readFile(file, 'utf8') };
  } finally {
    await addresses.close();
  }
}

const redirect = (response: ServerResponse, location: string, status = 302) =>
  response.writeHead(status, { Location: location }).end();

const unreachable = (message: string) => ({ name: 'TransferError', code: 'unreachable', message });

/** Resolves when the client has closed the connection. */
const hungUp = (response: ServerResponse) => new Promise<void>((gone) => response.once('close', gone));

describe('an input', () => {
  test('arrives whole, and its size is told', async () => {
    await using origin = await startOrigin((_request, response) => response.end('x'.repeat(LIMIT_BYTES)));

    expect(await fetchFrom(`${origin.url}/clip.mp4`)).toEqual({
      bytes: LIMIT_BYTES,
      content: 'x'.repeat(LIMIT_BYTES),
    });
  });

  test('may be empty', async () => {
    await using origin = await startOrigin((_request, response) => response.end());

    expect(await fetchFrom(origin.url)).toEqual({ bytes: 0, content: '' });
  });

  test('is not read at all if it announces too many bytes', async () => {
    await using origin = await startOrigin((_request, response) => {
      response.writeHead(200, { 'Content-Length': LIMIT_BYTES + 1 }).flushHeaders();
    });

    await expect(fetchFrom(origin.url)).rejects.toMatchObject({
      code: 'too_large',
      message: 'the input is larger than 1000 bytes',
    });
  });

  test('is cut where too many bytes come unannounced', async () => {
    const { promise: cut, resolve } = Promise.withResolvers<void>();
    await using origin = await startOrigin((_request, response) => {
      void hungUp(response).then(resolve);
      response.write('x'.repeat(LIMIT_BYTES));
      response.write('x');
    });

    await expect(fetchFrom(origin.url)).rejects.toMatchObject({ code: 'too_large' });
    await cut;
  });

  test.each([404, 401, 500, 204, 304])('is unreachable where the answer is %i', async (status) => {
    await using origin = await startOrigin((_request, response) => response.writeHead(status).end());

    await expect(fetchFrom(origin.url)).rejects.toMatchObject(
      unreachable(`the input's host answered with status ${status}`),
    );
  });

  test('is unreachable where nobody listens', async () => {
    const origin = await startOrigin(() => {});
    await origin[Symbol.asyncDispose]();

    await expect(fetchFrom(origin.url)).rejects.toMatchObject(
      unreachable('the input cannot be reached: its host refused the connection'),
    );
  });

  test('is unreachable where nobody vouches for the certificate', async () => {
    const server = createServer(selfSignedCertificate(), (_request, response) => response.end('x'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;

    await expect(fetchFrom(`https://localhost:${port}/`)).rejects.toMatchObject(
      unreachable('the input cannot be reached: its certificate is self-signed'),
    );
    await new Promise((resolve) => server.close(resolve));
  });

  test('is unreachable where the connection breaks off in the middle', async () => {
    await using origin = await startOrigin((_request, response) => {
      response.writeHead(200, { 'Content-Length': 100 });
      response.write('x', () => response.destroy());
    });

    await expect(fetchFrom(origin.url)).rejects.toMatchObject(
      unreachable('the input cannot be reached: its host broke off the connection'),
    );
  });

  test.each([
    ['never answers', (_response: ServerResponse) => {}],
    ['stops in the middle', (response: ServerResponse) => void response.write('x')],
  ])('that %s has its time, and its connection is cut', async (_what, answer) => {
    const { promise: cut, resolve } = Promise.withResolvers<void>();
    await using origin = await startOrigin((_request, response) => {
      void hungUp(response).then(resolve);
      answer(response);
    });

    await expect(fetchFrom(origin.url, { timeoutMs: 200 })).rejects.toMatchObject(
      unreachable('the input did not arrive within 0.2 seconds'),
    );
    await cut;
  });

  test('is given up when it is cancelled, for the reason that was given', async () => {
    const cancelled = new AbortController();
    await using origin = await startOrigin((_request, response) => {
      response.write('x');
      cancelled.abort(new Error('no longer wanted'));
    });

    await expect(fetchFrom(origin.url, { signal: cancelled.signal })).rejects.toThrow('no longer wanted');
  });
});

describe('a redirect of an input', () => {
  test.each([301, 302, 303, 307, 308])('with %i is followed', async (status) => {
    await using origin = await startOrigin((request, response) => {
      if (request.url === '/old') redirect(response, '/new?a=1', status);
      else response.end('moved');
    });

    expect(await fetchFrom(`${origin.url}/old`)).toMatchObject({ content: 'moved' });
    expect(origin.asked).toEqual(['GET /old', 'GET /new?a=1']);
  });

  test('is followed at most five times', async () => {
    await using origin = await startOrigin((request, response) => {
      const left = Number(request.url?.slice(1));
      if (left > 0) redirect(response, `/${left - 1}`);
      else response.end('found');
    });

    expect(await fetchFrom(`${origin.url}/5`)).toMatchObject({ content: 'found' });
    await expect(fetchFrom(`${origin.url}/6`)).rejects.toMatchObject(
      unreachable("the input's address redirects more than 5 times"),
    );
  });

  test.each([
    'http://10.0.0.1/',
    'http://169.254.169.254/latest/meta-data/',
    'http://0x0a000001/',
    'http://[::ffff:127.0.0.1]/',
    'http://[fd00::1]/',
    'http://0.0.0.0/',
  ])('to %s is not followed', async (location) => {
    await using origin = await startOrigin((_request, response) => redirect(response, location));

    await expect(fetchFrom(origin.url)).rejects.toMatchObject(
      unreachable("the input's address must not name a private, local or reserved host"),
    );
  });

  test.each(['file:///etc/passwd', 'ftp://example.com/', 'data:,x'])(
    'to %s is not followed',
    async (location) => {
      await using origin = await startOrigin((_request, response) => redirect(response, location));

      await expect(fetchFrom(origin.url)).rejects.toMatchObject(
        unreachable("the input's address must be an absolute https:// or http:// URL"),
      );
    },
  );

  test('to a host with credentials is not followed', async () => {
    await using origin = await startOrigin((_request, response) =>
      redirect(response, 'http://user:pw@127.0.0.1/'),
    );

    await expect(fetchFrom(origin.url)).rejects.toMatchObject(
      unreachable("the input's address must not hold a user name or password"),
    );
  });

  test('to nowhere is an answer like any other that is no file', async () => {
    await using origin = await startOrigin((_request, response) => response.writeHead(302).end());

    await expect(fetchFrom(origin.url)).rejects.toMatchObject(
      unreachable("the input's host answered with status 302"),
    );
  });
});

test('a full disk is not the other side’s fault', () => {
  const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });

  expect(asTransferError('the input', full)).toMatchObject({
    code: 'no_room',
    message: 'there is no room for the input at the moment',
  });
});

test('an address that may not be used is not asked, though it could be when the job was made', async () => {
  await expect(fetchFrom('file:///etc/passwd')).rejects.toMatchObject(
    unreachable("the input's address must be an absolute https:// or http:// URL"),
  );
});
