// Requests that `fetch` cannot make: from another loopback address, and on a connection that is not kept. And the samples
// of /metrics, which are read on such a one.

import { type IncomingMessage, request as plainRequest } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { text } from 'node:stream/consumers';
import { Agent, fetch, type RequestInit } from 'undici';

export type From = {
  /** A loopback address of this machine, by default 127.0.0.1. */
  readonly from?: string;
  /** A list is sent as several header lines. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>> | undefined;
  readonly method?: string;
  readonly body?: string | Buffer;
  /** What is trusted, for an https address. */
  readonly ca?: string;
};

type FromReply = {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  /** Empty if it is no JSON object. */
  readonly body: Record<string, unknown>;
};

export async function askFrom(
  url: string,
  { from = '127.0.0.1', headers, method = 'GET', body = '', ca }: From,
): Promise<FromReply> {
  const request = url.startsWith('https:') ? tlsRequest : plainRequest;
  const asked = request(url, {
    ...(ca !== undefined && { ca }),
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
    body: content.startsWith('{') ? (JSON.parse(content) as Record<string, unknown>) : {},
  };
}

const unkept = new Agent({ pipelining: 0 });

/** On a new connection: a server that makes room may end a kept one just when the next request is sent on it. */
export function fetchAfresh(url: string, init: RequestInit = {}): ReturnType<typeof fetch> {
  return fetch(url, { ...init, dispatcher: unkept });
}

/** `token`: where METRICS_OPEN is not set. */
type Reading = { readonly limitMs?: number; readonly token?: string };

/** Every sample by its name and labels, as written. `operators` is the address of the operators' port. */
export async function readMetrics(
  operators: string,
  { limitMs, token }: Reading = {},
): Promise<Map<string, number>> {
  const init = {
    ...(limitMs !== undefined && { signal: AbortSignal.timeout(limitMs) }),
    ...(token !== undefined && { headers: { authorization: `Bearer ${token}` } }),
  };
  const content = await (await fetchAfresh(`${operators}/metrics`, init)).text();
  const lines = content.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => {
      const end = line.lastIndexOf(' ');
      return [line.slice(0, end), Number(line.slice(end + 1))];
    }),
  );
}

/** @throws Error if there is no such sample. */
export async function readMetric(operators: string, name: string, options: Reading = {}): Promise<number> {
  const value = (await readMetrics(operators, options)).get(name);
  if (value === undefined) throw new Error(`there is no metric ${name}`);
  return value;
}
