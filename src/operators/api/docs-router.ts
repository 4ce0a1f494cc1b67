// The API's documentation, which opens in a browser: an OpenAPI document, a page, and the page's style and script. It holds no
// data, so it needs no token. A token that is sent all the same is checked, so that a client learns of a wrong one.

import { readFileSync } from 'node:fs';
import { type RequestHandler, Router } from 'express';
import { onlyGet } from '../../http/index.ts';
import { renderDocsPage } from './docs-page.ts';
import { needsToken } from './gate.ts';
import { createOpenApiDocument } from './openapi.ts';
import type { Operation } from './operation.ts';

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

/** Behind the gate, which counts and logs each request. The files are made at the first request for one. */
export function createDocsRouter(operations: readonly Operation[]): Router {
  let made: Promise<Files> | undefined;
  const router = Router({ caseSensitive: true, strict: true });
  for (const [path, type] of Object.entries(TYPES) as [keyof Files, string][]) {
    router.get(path, checksToken, async (_request, response) => {
      made ??= makeFiles(operations);
      response.set({ 'Content-Type': type, 'Content-Security-Policy': POLICY }).send((await made)[path]);
    });
    router.all(path, onlyGet);
  }
  return router;
}

const TYPES = {
  '/openapi.json': 'application/json; charset=utf-8',
  '/docs': 'text/html; charset=utf-8',
  '/docs.css': 'text/css; charset=utf-8',
  '/docs.js': 'text/javascript; charset=utf-8',
} as const;
type Files = Readonly<Record<keyof typeof TYPES, string>>;

async function makeFiles(operations: readonly Operation[]): Promise<Files> {
  const document = createOpenApiDocument(operations);
  return {
    '/openapi.json': JSON.stringify(document),
    '/docs': await renderDocsPage(document),
    '/docs.css': read('docs-page.css'),
    '/docs.js': read('docs-page.js'),
  };
}

const read = (name: string) => readFileSync(new URL(name, import.meta.url), 'utf8');

const checksToken: RequestHandler = (request, response, next) => {
  if (request.headers.authorization === undefined) next();
  else needsToken(request, response, next);
};
