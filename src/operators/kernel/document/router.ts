// Serves the documents, which open in a browser and without a token. A token that is sent all the same is checked, so that a
// client learns of a wrong one.

import { type RequestHandler, Router } from 'express';
import { notFound, onlyGet } from '../../../http/index.ts';
import { needsToken } from '../operation/gate.ts';
import { type DocsFile, type DocsSubjects, makeDocsFiles } from './files.ts';

/** The script calls the API, and nothing else is allowed to. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const PATHS = [
  '/openapi.json',
  '/openapi.intake.json',
  '/asyncapi.json',
  '/schemas',
  '/schemas/*name',
  '/docs',
  '/docs.css',
  '/docs.js',
];

/** Behind the gate, which counts and logs each request. */
export function createDocsRouter(subjects: DocsSubjects): Router {
  const router = Router({ caseSensitive: true, strict: true });
  router.get(PATHS, checksToken, serveFiles(subjects));
  router.all(PATHS, onlyGet);
  return router;
}

/** They are made at the first request for one. */
function serveFiles(subjects: DocsSubjects): RequestHandler {
  let made: Promise<ReadonlyMap<string, DocsFile>> | undefined;
  return async (request, response, next) => {
    made ??= makeDocsFiles(subjects);
    const file = (await made).get(request.path);
    if (file === undefined) return void notFound(request, response, next);
    // Express answers 304 where the client has this ETag.
    response.set({ ...file.headers, 'Content-Security-Policy': POLICY }).send(file.text);
  };
}

const checksToken: RequestHandler = (request, response, next) => {
  if (request.headers.authorization === undefined) next();
  else needsToken(request, response, next);
};
