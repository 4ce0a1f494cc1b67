// Requests from one loopback address or another, since whose address it is makes the difference.

import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';

export type From = {
  /** A loopback address of this machine, `127.0.0.1` if not given. */
  readonly from?: string;
  /** A list is sent as so many lines. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>> | undefined;
  readonly method?: string;
  readonly body?: string;
};

type FromReply = {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: Record<string, unknown>;
};

export async function askFrom(
  url: string,
  { from = '127.0.0.1', headers, method = 'GET', body = '' }: From,
): Promise<FromReply> {
  const asked = request(url, {
    method,
    localAddress: from,
    headers: headers as Record<string, string | string[]>,
    agent: false,
  });
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    asked.once('response', resolve).once('error', reject);
  });
  asked.end(body);
  const response = await answered;
  const content = await text(response);
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    body: content === '' ? {} : (JSON.parse(content) as Record<string, unknown>),
  };
}
