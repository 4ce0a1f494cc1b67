// A small file server for inputs and outputs, so that conversions work without a network: GET and HEAD (with ranges) for
// the files of one folder, and PUT to create or replace them. It has no authentication, so it belongs on loopback.

import { mkdir } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';
import express, { type ErrorRequestHandler, type Request, type RequestHandler, type Response } from 'express';
import { describeError } from '../../base/errors.ts';
import { createStop, listen } from '../../http/index.ts';
import type { Logger } from '../../base/log/log.ts';
import { findFormat } from '../engine/formats.ts';
import { hostInUrl } from '../../base/net/host-in-url.ts';
import { isPlainName } from './names.ts';
import { kindOf, storeFile, type StoreResult } from './store-file.ts';

export type FileServer = {
  readonly port: number;
  /** Without a slash at its end. */
  readonly url: string;
  /** Cuts what is under way. When it resolves, incomplete files are removed. Safe to call twice. */
  readonly stop: () => Promise<void>;
};

export type FileServerOptions = {
  readonly host: string;
  /** 0 chooses a free one. */
  readonly port: number;
  /** Created if missing. */
  readonly folder: string;
  /** Per file. */
  readonly maxBytes: number;
  readonly log: Logger;
};

const HEADERS_TIMEOUT_MS = 5_000;
/** For a whole upload, over loopback. */
const REQUEST_TIMEOUT_MS = 5 * 60_000;
const CHECK_INTERVAL_MS = 1_000;
const MAX_CONNECTIONS = 64;

type ErrorAnswer = { readonly status: number; readonly error: string; readonly text: string };

const NOT_FOUND: ErrorAnswer = { status: 404, error: 'not_found', text: 'there is no such file' };
const BAD_NAME: ErrorAnswer = {
  status: 400,
  error: 'bad_request',
  text: 'a file name is made of at most 100 letters, digits, dots, dashes and underscores, a letter or digit first',
};
const PARTIAL: ErrorAnswer = { status: 400, error: 'bad_request', text: 'a file can only be put as a whole' };
const WRONG_METHOD: ErrorAnswer = { status: 405, error: 'method_not_allowed', text: 'use GET, HEAD or PUT' };
const NOT_STORED = {
  too_large: { status: 413, error: 'payload_too_large', text: 'the file is too large' },
  full: { status: 507, error: 'insufficient_storage', text: 'there are too many files' },
  not_a_file: { status: 409, error: 'conflict', text: 'the name is taken by something that is no file' },
} as const satisfies Readonly<Record<string, ErrorAnswer>>;

/** @throws Error when the port is taken. */
export async function startFileServer(options: FileServerOptions): Promise<FileServer> {
  const { host, folder } = options;
  await mkdir(folder, { recursive: true });
  const uploads = new Set<Promise<unknown>>();
  const server = createServer(
    {
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: CHECK_INTERVAL_MS,
    },
    createApp(options, (upload) => {
      uploads.add(upload);
      void upload.finally(() => uploads.delete(upload)).catch(() => {});
    }),
  );
  server.maxConnections = MAX_CONNECTIONS;
  const stop = createStop(server);
  const port = await listen(server, options);
  return {
    port,
    url: `http://${hostInUrl(host)}:${port}`,
    stop: async () => {
      await stop(0);
      await Promise.allSettled(uploads);
    },
  };
}

function createApp(options: FileServerOptions, track: (upload: Promise<unknown>) => void): express.Express {
  const app = express();
  app.disable('x-powered-by');
  app.enable('case sensitive routing');
  app.enable('strict routing');
  app.use(logged(options.log));
  app.get('/:name', sendFile(options));
  app.put('/:name', takeFile(options, track));
  app.all('/:name', (_request, response) => sendError(response.set('Allow', 'GET, HEAD, PUT'), WRONG_METHOD));
  app.use((_request, response) => sendError(response, NOT_FOUND));
  app.use(onError(options.log));
  return app;
}

function logged(log: Logger): RequestHandler {
  return (request, response, next) => {
    const { method, path } = request;
    const line = () => ({ method, path: path.slice(0, 128), status: response.statusCode });
    response.once('close', () => log.debug(line(), 'file'));
    next();
  };
}

function sendFile({ folder }: FileServerOptions): RequestHandler {
  return async (request, response, next) => {
    const name = nameOf(request);
    if (name === undefined) return sendError(response, BAD_NAME);
    if ((await kindOf(join(folder, name))) !== 'file') return sendError(response, NOT_FOUND);
    const type = findFormat(extname(name).slice(1))?.mediaType ?? 'application/octet-stream';
    response.set({ 'Content-Type': type, 'X-Content-Type-Options': 'nosniff' });
    // Express handles ranges, HEAD and conditional requests.
    response.sendFile(name, { root: folder, dotfiles: 'deny', cacheControl: false }, (error) => {
      if (error && !response.headersSent) next(error);
    });
  };
}

function takeFile(
  { folder, maxBytes }: FileServerOptions,
  track: (upload: Promise<unknown>) => void,
): RequestHandler {
  return async (request, response) => {
    const name = nameOf(request);
    if (name === undefined) return sendError(response, BAD_NAME);
    if (request.get('content-range') !== undefined) return sendError(response, PARTIAL);
    const isTooLarge = Number(request.get('content-length')) > maxBytes;
    const upload: Promise<StoreResult> = isTooLarge
      ? Promise.resolve({ outcome: 'too_large' })
      : storeFile(request, { folder, name, maxBytes });
    track(upload);
    const { outcome } = await upload;
    if (outcome === 'created') return void response.status(201).location(`/${name}`).end();
    if (outcome === 'replaced') return void response.status(204).end();
    sendError(response, NOT_STORED[outcome]);
  };
}

function nameOf(request: Request): string | undefined {
  const { name } = request.params;
  return typeof name === 'string' && isPlainName(name) ? name : undefined;
}

function sendError(response: Response, { status, error, text }: ErrorAnswer): void {
  // Otherwise Node would read the rest of the upload, however long it is.
  if (response.req.method === 'PUT') response.set('Connection', 'close');
  response.status(status).json({ error, message: text });
}

function onError(log: Logger): ErrorRequestHandler {
  return (error: unknown, request, response, next) => {
    if (response.headersSent) return next(error);
    response.removeHeader('Content-Type');
    const status = (error as { status?: unknown }).status;
    // A condition or range that the file does not meet has no body.
    if (status === 412 || status === 416) return void response.status(status).end();
    // The file was removed after our check.
    if (status === 404) return sendError(response, NOT_FOUND);
    // The path cannot be decoded.
    if (typeof status === 'number' && status < 500) return sendError(response, BAD_NAME);
    // The connection broke during the upload.
    if (!request.complete) return void response.destroy();
    log.error({ err: describeError(error) }, 'unexpected error of the file server');
    sendError(response, { status: 500, error: 'internal', text: 'something went wrong on our side' });
  };
}
