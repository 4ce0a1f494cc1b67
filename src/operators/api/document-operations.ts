// The API's documentation as two operations: the OpenAPI document and a page to read.

import { Readable } from 'node:stream';
import { z } from 'zod';
import { renderDocsPage } from './docs-page.ts';
import { createOpenApiDocument, type OpenApiDocument } from './openapi.ts';
import { defineRead, type Operation } from './operation.ts';

/** Adds the two operations, which the document describes as well. It is made at the first request for it. */
export function withDocument(operations: readonly Operation[]): readonly Operation[] {
  let made: OpenApiDocument | undefined;
  const document = () => (made ??= createOpenApiDocument(all));
  const all: readonly Operation[] = [...operations, jsonOperation(document), pageOperation(document)];
  return all;
}

function jsonOperation(document: () => OpenApiDocument): Operation {
  return defineRead({
    id: 'getDocument',
    path: '/openapi.json',
    tag: 'About this API',
    summary: 'This API as an OpenAPI 3.1 document',
    role: 'viewer',
    answers: { 200: { description: 'OpenAPI 3.1.', schema: z.looseObject({ openapi: z.string() }) } },
    run: async () => ({ status: 200, body: document() }),
  });
}

function pageOperation(document: () => OpenApiDocument): Operation {
  let page: string | undefined;
  return defineRead({
    id: 'getDocs',
    path: '/docs',
    tag: 'About this API',
    summary: 'This API as a page to read',
    role: 'viewer',
    answers: {
      200: { description: 'HTML, made from the OpenAPI document.', contentType: 'text/html; charset=utf-8' },
    },
    run: async () => {
      page ??= renderDocsPage(document());
      return { status: 200, contentType: 'text/html; charset=utf-8', stream: Readable.from([page]) };
    },
  });
}
