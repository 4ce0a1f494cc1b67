// Puts a file to its address with one PUT whose length is told beforehand, as storage services want it. Never follows a
// redirect: where a result goes is for the job's owner to say and not for the host.

import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { request } from 'undici';
import { version } from '../../version.ts';
import type { Addresses } from './addresses.ts';
import { inWords, withDeadline } from './deadline.ts';
import { asTransferError, TransferError } from './transfer-error.ts';

export type UploadOptions = {
  readonly url: string;
  readonly file: string;
  readonly mediaType: string;
  readonly addresses: Addresses;
  /** For everything. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
};

/** What may be read of the answer's body, to keep its connection; else it is cut. */
const UNWANTED_BYTES = 16 * 1024;

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
      'User-Agent': `tallyhook-sandbox/${version}`,
    },
    body: createReadStream(file),
    // One clock for the whole exchange; these two start anew with every part of it.
    headersTimeout: 0,
    bodyTimeout: 0,
    signal,
  });
  await body.dump({ limit: UNWANTED_BYTES, signal });
  return statusCode;
}
