// Mounts the operations below /api/v1. Every call goes the same way: check the caller's role, read the input, run the
// operation, send the answer or the error.

import { type Request, type RequestHandler, type Response, Router } from 'express';
import { appendToLog } from '../access/operator-log.ts';
import { describeError } from '../../errors.ts';
import type { DatabaseConnection } from '../../ledger/index.ts';
import type { Logger } from '../../log.ts';
import { act, readIdempotencyKey } from './actions.ts';
import { isDisconnect, sendError, sendJson, sendStream, toApiError, toJson } from './answers.ts';
import { admit, needsToken } from './gate.ts';
import { readInput } from './input.ts';
import { type Action, ApiError, type Caller, notFound, type Operation, type Read } from './operation.ts';

type Deps = {
  readonly operations: readonly Operation[];
  readonly connection: DatabaseConnection;
  readonly log: Logger;
};

export function createApi({ operations, connection, log }: Deps): Router {
  const router = Router({ caseSensitive: true, strict: true });
  router.use(needsToken);
  for (const [path, found] of Map.groupBy(operations, (operation) => operation.path)) {
    // The first one would win, whatever role it asks for.
    if (new Set(found.map(({ method }) => method)).size < found.length) {
      throw new Error(`two operations have the same method and path ${path}`);
    }
    const route = router.route(path.replaceAll(/\{(\w+)\}/g, ':$1'));
    for (const operation of found) {
      route[operation.method](handlerOf(operation, { connection, log }));
    }
    route.all(wrongMethod(found));
  }
  router.use((_request, response) => sendError(response, notFound('address in this API')));
  return router;
}

/** HEAD is not allowed either: a read of a body would be logged though nothing was shown. */
function wrongMethod(operations: readonly Operation[]): RequestHandler {
  const allowed = operations.map(({ method }) => method.toUpperCase()).join(', ');
  return (_request, response) => {
    response.set('Allow', allowed);
    sendError(response, new ApiError(405, 'method_not_allowed', `use ${allowed}`));
  };
}

function handlerOf(operation: Operation, deps: Omit<Deps, 'operations'>): RequestHandler {
  return async (request, response, next) => {
    if (request.method === 'HEAD') return next();
    const disconnect = new AbortController();
    response.once('close', () => {
      if (!response.writableFinished) disconnect.abort();
    });
    if (response.destroyed) return; // the caller disconnected while the gate looked up the token
    try {
      const caller = admit(operation, response);
      const call = { request, response, caller, signal: disconnect.signal, ...deps };
      await (operation.method === 'get' ? answerRead(operation, call) : answerAction(operation, call));
    } catch (error) {
      if (response.headersSent || isDisconnect(error)) return void response.destroy();
      const known = toApiError(error);
      if (known !== undefined) return sendError(response, known);
      deps.log.error({ err: describeError(error), operation: operation.id }, 'unexpected error');
      sendError(response, new ApiError(500, 'internal', 'something went wrong on our side'));
    }
  };
}

type Call = Omit<Deps, 'operations'> & {
  readonly request: Request;
  readonly response: Response;
  readonly caller: Caller;
  readonly signal: AbortSignal;
};

async function answerRead(read: Read, call: Call): Promise<void> {
  const { request, response, caller, signal, connection, log } = call;
  const reply = await read.run(await readInput(read, request), {
    caller,
    signal,
    record: (entry) => appendToLog(connection.db, caller, entry),
  });
  if ('stream' in reply) return sendStream(response, reply, { signal, log });
  sendJson(response, reply.status, toJson(read, reply));
}

async function answerAction(action: Action, call: Call): Promise<void> {
  const { request, response, caller, signal, connection } = call;
  const key = readIdempotencyKey(request);
  const input = await readInput(action, request);
  const acted = await act(connection, { action, input, key, context: { caller, signal } });
  if (acted.isReplayed) response.set('Idempotency-Replayed', 'true');
  sendJson(response, acted.status, acted.json);
}
