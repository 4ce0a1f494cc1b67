// One signed request over HTTP/1.1 as the service sends it, and what its sender sees of the answer: a status, an error,
// or nothing within its 10 s. The connection is kept beyond that, so that an answer which comes too late is noticed.

import { type Agent, type IncomingHttpHeaders, request } from 'node:http';

/** Spec section 6: "must answer within 10 seconds". Not scaled down. */
export const PATIENCE_MS = 10_000;
const LATE_ANSWER_MS = 10_000;

type Reply = {
  readonly status: number | undefined;
  readonly error: string | undefined;
  readonly text: string;
  /** Empty where no whole answer came. */
  readonly headers: IncomingHttpHeaders;
};

/** Never rejects. `onLate` hears of an answer that comes after the reply said `time-out`. */
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
    hopeless.refresh();
  }, PATIENCE_MS);
  const hopeless = setTimeout(() => outgoing.destroy(), PATIENCE_MS + LATE_ANSWER_MS);
  const settle = (reply: Reply) => {
    clearTimeout(overdue);
    clearTimeout(hopeless);
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
