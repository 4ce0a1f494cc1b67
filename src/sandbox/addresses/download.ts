// Downloads an input into a file, with limits on its size and time, from allowed addresses only. Redirects are followed
// here and not by undici, since each new URL must be checked like the first one.

import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { type Dispatcher, request } from 'undici';
import { type Addresses, USER_AGENT } from './addresses.ts';
import { inWords, withDeadline } from './deadline.ts';
import { asTransferError, TransferError } from './transfer-error.ts';

export type DownloadOptions = {
  readonly url: string;
  /** Must not exist. After an error it can be half-written: the caller removes the folder. */
  readonly file: string;
  readonly addresses: Addresses;
  readonly maxBytes: number;
  /** For the whole download, redirects included. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
};

const MAX_REDIRECTS = 5;
const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];
/** An unused body up to this size is read, so that its connection can be kept. A longer one is cut. */
const UNUSED_BODY_BYTES = 16 * 1024;

type Answer = Dispatcher.ResponseData;

/** @returns the file's size in bytes. @throws TransferError, or the signal's reason once it is aborted. */
export async function download(options: DownloadOptions): Promise<number> {
  const { file, maxBytes, timeoutMs, signal } = options;
  const late = () =>
    new TransferError('unreachable', `the input did not arrive within ${inWords(timeoutMs)}`);
  return withDeadline({ signal, timeoutMs, late }, async (until) => {
    try {
      const answer = await open(options, until);
      return await save(answer, { file, maxBytes, signal: until });
    } catch (error) {
      throw asTransferError('the input', error);
    }
  });
}

/** @returns the response with the file, its body unread. */
async function open({ url, addresses }: DownloadOptions, signal: AbortSignal): Promise<Answer> {
  let current = url;
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
    const fault = addresses.fault(current);
    if (fault !== undefined) throw new TransferError('unreachable', `the input's address ${fault}`);
    const answer = await request(current, {
      dispatcher: addresses.dispatcher,
      headers: { Accept: '*/*', 'Accept-Encoding': 'identity', 'User-Agent': USER_AGENT },
      signal,
    });
    if (answer.statusCode === 200) return answer;
    const next = locationOf(answer);
    await answer.body.dump({ limit: UNUSED_BODY_BYTES, signal });
    if (!REDIRECTS.includes(answer.statusCode) || next === undefined || !URL.canParse(next, current))
      throw new TransferError('unreachable', `the input's host answered with status ${answer.statusCode}`);
    current = new URL(next, current).href;
  }
  throw new TransferError('unreachable', `the input's address redirects more than ${MAX_REDIRECTS} times`);
}

function locationOf({ headers }: Answer): string | undefined {
  const { location } = headers;
  return typeof location === 'string' ? location : undefined;
}

async function save(
  { headers, body }: Answer,
  { file, maxBytes, signal }: { file: string; maxBytes: number; signal: AbortSignal },
): Promise<number> {
  let bytes = 0;
  const tooLarge = () => new TransferError('too_large', `the input is larger than ${maxBytes} bytes`);
  async function* counted(chunks: AsyncIterable<Uint8Array>) {
    if (Number(headers['content-length']) > maxBytes) throw tooLarge();
    for await (const chunk of chunks) {
      bytes += chunk.byteLength;
      if (bytes > maxBytes) throw tooLarge();
      yield chunk;
    }
  }
  await pipeline(body, counted, createWriteStream(file, { flags: 'wx', mode: 0o600 }), { signal });
  return bytes;
}
