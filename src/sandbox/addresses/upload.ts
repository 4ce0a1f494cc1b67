// Uploads a file with one PUT with a Content-Length, as storage services require. Follows no redirect: the client decides
// where a result goes, not the host.

import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { request } from 'undici';
import { type Addresses, USER_AGENT } from './addresses.ts';
import { inWords, withDeadline } from './deadline.ts';
import { asTransferError, TransferError } from './transfer-error.ts';

export type UploadOptions = {
  readonly url: string;
  readonly file: string;
  readonly mediaType: string;
  readonly addresses: Addresses;
  /** For the whole upload. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
};

/** A response body up to this size is read, so that its connection can be kept. A longer one is cut. */
const UNUSED_BODY_BYTES = 16 * 1024;

/** @returns the bytes sent. @throws TransferError, or the signal's reason once it is aborted. */
export async function upload(options: UploadOptions): Promise<number> {
  const { url, file, addresses, timeoutMs, signal } = options;
  const fault = addresses.fault(url);
  if (fault !== undefined) throw new TransferError('unreachable', `the output's address ${fault}`);
  const { size } = await stat(file);
  const late = () =>
    new TransferError('unreachable', `the output was not taken within ${inWords(timeoutMs)}`);
  return withDeadline({ signal, timeoutMs, late }, async (until) => {
    const status = await put(options, size, until).catch((error: unknown) => {
      throw asTransferError('the output', error);
    });
    if (status < 200 || status > 299)
      throw new TransferError('unreachable', `the output's host answered with status ${status}`);
    return size;
  });
}

async function put(
  { url, file, mediaType, addresses }: UploadOptions,
  size: number,
  signal: AbortSignal,
): Promise<number> {
  const { statusCode, body } = await request(url, {
    method: 'PUT',
    dispatcher: addresses.dispatcher,
    headers: {
      'Content-Type': mediaType,
      'Content-Length': String(size),
      'User-Agent': USER_AGENT,
    },
    body: createReadStream(file),
    signal,
  });
  await body.dump({ limit: UNUSED_BODY_BYTES, signal });
  return statusCode;
}
