// A receiver of webhooks on a real socket. It answers as the test wants and keeps every request.

import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Certificate } from './certificate.ts';
import { listenOnFreePort } from './origin.ts';
import { waitFor } from './waits.ts';

export type Received = {
  readonly method: string;
  readonly path: string;
  /** Names and values in turn, as received. */
  readonly rawHeaders: readonly string[];
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
  /** The parsed body; empty if it is not JSON. */
  readonly said: Record<string, unknown>;
  readonly atMs: number;
};

/** Answers the request, or does not. `index` counts requests from 0, in the order of arrival. */
export type Respond = (response: ServerResponse, received: Received, index: number) => void;

export type Receiver = AsyncDisposable & {
  readonly url: string;
  readonly port: number;
  readonly received: readonly Received[];
  /** The most requests that were under way at once. */
  readonly mostAtOnce: () => number;
  /** Waits for so many requests, and returns all. */
  readonly untilReceived: (count: number) => Promise<readonly Received[]>;
};

export const answer =
  (...statuses: readonly number[]): Respond =>
  (response, _received, index) =>
    void response.writeHead(statuses[Math.min(index, statuses.length - 1)] ?? 200).end();

/** Leaves the connection open without an answer. */
export const hang: Respond = () => {};

export async function startReceiver(
  respond: Respond = answer(200),
  { certificate }: { certificate?: Certificate } = {},
): Promise<Receiver> {
  const received: Received[] = [];
  let underWay = 0;
  let mostAtOnce = 0;
  const listener: RequestListener = (request, response) => {
    underWay += 1;
    mostAtOnce = Math.max(mostAtOnce, underWay);
    response.once('close', () => {
      underWay -= 1;
    });
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const one = toReceived(request, Buffer.concat(chunks));
      received.push(one);
      respond(response, one, received.length - 1);
    });
  };
  const server = certificate === undefined ? createServer(listener) : createTlsServer(certificate, listener);
  const port = await listenOnFreePort(server);
  return {
    url: `${certificate === undefined ? 'http' : 'https'}://127.0.0.1:${port}/webhooks`,
    port,
    received,
    mostAtOnce: () => mostAtOnce,
    untilReceived: (count) =>
      waitFor(
        () => {
          if (received.length < count) throw new Error(`${received.length} of ${count} requests so far`);
          return received;
        },
        { timeout: 10_000, interval: 5 },
      ),
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function toReceived(request: IncomingMessage, body: Buffer): Received {
  const { method = '', url: path = '', headers, rawHeaders } = request;
  return { method, path, headers, rawHeaders, body, said: parse(body), atMs: performance.now() };
}

function parse(body: Buffer): Record<string, unknown> {
  try {
    return JSON.parse(body.toString('utf8')) as Record<string, unknown>;
  } catch {
    return {};
  }
}
