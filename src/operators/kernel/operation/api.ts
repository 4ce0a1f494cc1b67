// Mounts the operations below /api/v1. Every call goes the same way: `perform` (perform.ts) runs the
// operation, and its answer or error is sent.

import { type RequestHandler, Router } from 'express';
import { describeError } from '../../../base/errors.ts';
import type { Logger } from '../../../base/log/log.ts';
import { isDisconnect, sendError, sendHead, sendJson, sendStream, toApiError } from './answers.ts';
import { callerOf, needsToken } from './gate.ts';
import { readRequest } from './input.ts';
import { ApiError, notFound, type Operation } from './operation.ts';
import type { Perform } from './perform.ts';

type Deps = {
  readonly operations: readonly Operation[];
  readonly perform: Perform;
  readonly log: Logger;
};

export function createApi({ operations, perform, log }: Deps): Router {
  const router = Router({ caseSensitive: true, strict: true });
  router.use(needsToken);
  for (const [path, found] of Map.groupBy(operations, (operation) => operation.path)) {
    // The first one would win, whatever role it asks for.
    if (new Set(found.map(({ method }) => method)).size < found.length) {
      throw new Error(`two operations have the same method and path ${path}`);
    }
    const route = router.route(path.replaceAll(/\{(\w+)\}/g, ':$1'));
    for (const operation of found) {
      route[operation.method](handlerOf(operation, { perform, log }));
    }
    route.all(wrongMethod(found));
  }
  router.use((_request, response) => sendError(response, notFound('address in this API')));
  return router;
}

function wrongMethod(operations: readonly Operation[]): RequestHandler {
  const allowed = operations
    .flatMap(({ method }) => (method === 'get' ? ['GET', 'HEAD'] : ['POST']))
    .join(', ');
  return (_request, response) => {
    response.set('Allow', allowed);
    sendError(response, new ApiError(405, 'method_not_allowed', `use ${allowed}`));
  };
}

/** Express has HEAD answered by the route of GET, and leaves out the body. */
function handlerOf(operation: Operation, { perform, log }: Pick<Deps, 'perform' | 'log'>): RequestHandler {
  return async (request, response) => {
    const disconnect = new AbortController();
    response.once('close', () => {
      if (!response.writableFinished) disconnect.abort();
    });
    if (response.destroyed) return; // the caller disconnected while the gate looked up the token
    const { signal } = disconnect;
    try {
      const performed = await perform(operation, () => readRequest(operation, request), {
        caller: callerOf(operation, response),
        signal,
        isShown: request.method !== 'HEAD',
      });
      if ('stream' in performed && request.method === 'HEAD') return sendHead(response, performed);
      if ('stream' in performed) return await sendStream(response, performed, { signal, log });
      if (performed.isReplayed) response.set('Idempotency-Replayed', 'true');
      sendJson(response, performed.status, performed.json);
    } catch (error) {
      if (response.headersSent || isDisconnect(error)) return void response.destroy();
      const known = toApiError(error);
      if (known !== undefined) return sendError(response, known);
      log.error({ err: describeError(error), operation: operation.id }, 'unexpected error');
      sendError(response, new ApiError(500, 'internal', 'something went wrong on our side'));
    }
  };
}
