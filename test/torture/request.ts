// Sends one request over HTTP/1.1 as the conversion service does. Its sender gets a status, an error, or a time-out after
// 10 s. The connection stays open for longer, so that an answer that is too late is noticed.

import { type Agent, type IncomingHttpHeaders, request } from 'node:http';

/** The sender's own limit (service interface 6.1). Not scaled down. */
export const PATIENCE_MS = 10_000;
const LATE_ANSWER_MS = 10_000;

type Reply = {
  readonly status: number | undefined;
  readonly error: string | undefined;
  readonly text: string;
  /** Empty if no whole answer came. */
  readonly headers: IncomingHttpHeaders;
};

/** Never rejects. `onLate` is called if an answer comes after the `time-out`. */
export function send(options: {
  url: string;
  method: string;
  headers: Readonly<Record<string, string>>;
  body: string | Buffer;
  agent: Agent | false;
  onLate: () => void;
}): Promise<Reply> {
  const { promise, resolve } = Promise.withResolvers<Reply>();
  let isOverdue = false;
  const overdue = setTimeout(() => {
    isOverdue = true;
    resolve({ status: undefined, error: 'time-out', text: '', headers: {} });
    giveUp.refresh();
  }, PATIENCE_MS);
  const giveUp = setTimeout(() => outgoing.destroy(), PATIENCE_MS + LATE_ANSWER_MS);
  const settle = (reply: Reply) => {
    clearTimeout(overdue);
    clearTimeout(giveUp);
    if (isOverdue && reply.status !== undefined) options.onLate();
    resolve(reply);
  };
  const fail = (error: Error & { code?: string }) =>
    settle({ status: undefined, error: error.code ?? error.message, text: '', headers: {} });
  const outgoing = request(options.url, {
    method: options.method,
    agent: options.agent,
    headers: { ...options.headers, 'Content-Length': String(Buffer.byteLength(options.body)) },
  });
  outgoing.on('error', fail);
  outgoing.on('response', (response) => {
    const chunks: Buffer[] = [];
    response.on('data', (chunk: Buffer) => chunks.push(chunk));
    response.on('error', fail);
    response.on('end', () => {
      const text = Buffer.concat(chunks).toString('utf8');
      settle({ status: response.statusCode, error: undefined, text, headers: response.headers });
    });
  });
  outgoing.end(options.body);
  return promise;
}
