// Takes the usual delivery ahead of Express, which needs about as long to find a route as the whole body takes to be understood:
// POST to the exact path of a source, straight from its sender. Every other request goes to Express, which has the same route
// and reads what is unusual: escapes, a query, hops of proxies.

import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import { describeError } from '../errors.ts';
import { INTERNAL, NOSNIFF, peerOf } from '../http/index.ts';
import { DEFAULT_SOURCE } from '../source-name.ts';
import type { Deliver } from './delivery.ts';

/** With a name that needs no decoding, so that Express would find the same one. */
const USUAL_PATH = /^\/webhooks(?:\/([a-z0-9_-]{1,63}))?$/;

export function aheadOf(
  app: RequestListener,
  { deliver, log }: { deliver: Deliver; log: Logger },
): RequestListener {
  return (request, response) => {
    const { method, url: path = '', headers } = request;
    const match = USUAL_PATH.exec(path);
    if (match === null || method !== 'POST' || headers['x-forwarded-for'] !== undefined)
      return app(request, response);
    const [, source = DEFAULT_SOURCE] = match;
    deliver(request, response, { source, path, sender: peerOf(request) }).catch((error: unknown) => {
      log.error({ err: describeError(error), path }, 'unexpected error');
      answerInternal(request, response);
    });
  };
}

/** As Express would by our error handler; and nothing more is read from the connection. */
function answerInternal({ socket }: IncomingMessage, response: ServerResponse): void {
  if (response.headersSent) return void socket.destroy();
  response
    .writeHead(500, { ...NOSNIFF, 'Content-Type': 'application/json; charset=utf-8', Connection: 'close' })
    .end(JSON.stringify(INTERNAL));
}
