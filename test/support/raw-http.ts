// HTTP that no client library would send: bytes on a socket, and the parsed answers.

import { connect } from 'node:net';
import { waitFor } from './waits.ts';

type RawReply = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Record<string, unknown>;
};

type RawConnection = Disposable & {
  readonly write: (bytes: string | Buffer) => void;
  /** Sends what is buffered, and a FIN. */
  readonly end: () => void;
  /** Resets the connection. */
  readonly reset: () => void;
  /** Waits for so many whole answers. */
  readonly replies: (count?: number) => Promise<readonly RawReply[]>;
  /** Everything received so far, unparsed. */
  readonly text: () => string;
  /** Resolves when the server closed the connection. */
  readonly closed: Promise<void>;
};

/** Connects to a port of this machine. */
export async function openRaw(port: number): Promise<RawConnection> {
  let received = Buffer.alloc(0);
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  const socket = connect({ port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true });
  socket.on('error', () => {}); // a reset also closes it
  socket.on('data', (chunk) => {
    received = Buffer.concat([received, chunk]);
  });
  socket.on('end', resolve);
  socket.on('close', () => resolve());
  await new Promise<void>((connected) => socket.once('connect', connected));
  return {
    write: (bytes) => void socket.write(bytes),
    end: () => void socket.end(),
    reset: () => void socket.resetAndDestroy(),
    closed,
    text: () => received.toString('latin1'),
    replies: (count = 1) =>
      waitFor(
        () => {
          const replies = parseReplies(received);
          if (replies.length < count) throw new Error(`${replies.length} of ${count} answers so far`);
          return replies;
        },
        { timeout: 10_000, interval: 10 },
      ),
    [Symbol.dispose]: () => void socket.destroy(),
  };
}

/** A POST to /webhooks, head and body. `headers` replace the default ones, or remove them if undefined. */
export function rawPost(
  body: string,
  headers: Readonly<Record<string, string | undefined>> = {},
  requestLine = 'POST /webhooks HTTP/1.1',
): string {
  const all = { Host: 'relay.test', 'Content-Length': String(Buffer.byteLength(body)), ...headers };
  const lines = Object.entries(all).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}: ${value}\r\n`],
  );
  return `${requestLine}\r\n${lines.join('')}\r\n${body}`;
}

function parseReplies(bytes: Buffer): RawReply[] {
  const replies: RawReply[] = [];
  let text = bytes.toString('latin1');
  for (;;) {
    const headEnd = text.indexOf('\r\n\r\n');
    if (headEnd < 0) return replies;
    const [statusLine = '', ...lines] = text.slice(0, headEnd).split('\r\n');
    const status = Number(statusLine.split(' ')[1]);
    const headers = Object.fromEntries(
      lines.map((line) => [
        line.slice(0, line.indexOf(':')).toLowerCase(),
        line.slice(line.indexOf(':') + 1).trim(),
      ]),
    );
    const length = Number(headers['content-length'] ?? 0);
    const rest = text.slice(headEnd + 4);
    if (rest.length < length) return replies;
    text = rest.slice(length);
    if (status < 200) continue; // 100 Continue is no answer
    const body = rest.slice(0, length);
    replies.push({
      status,
      headers,
      body: body === '' ? {} : (JSON.parse(body) as Record<string, unknown>),
    });
  }
}
