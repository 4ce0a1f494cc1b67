// What opens without a token, since it holds no data: the documents for operators, senders and subscribers, the released JSON
// Schemas, and the page with its style and script.

import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import {
  type Bus,
  createAsyncApiDocument,
  createIntakeDocument,
  type IntakeLimits,
  readReleasedForms,
} from '../../../specifications/index.ts';
import type { Operation } from '../operation/operation.ts';
import { createOpenApiDocument } from './openapi.ts';
import { renderDocsPage } from './page.ts';

export type DocsFile = {
  readonly text: string;
  /** Content-Type, and for what may be stored Cache-Control and ETag. */
  readonly headers: Readonly<Record<string, string>>;
};

export type DocsSubjects = {
  readonly operations: readonly Operation[];
  readonly bus: Bus;
  readonly intake: IntakeLimits;
};

const JSON_TYPE = 'application/json; charset=utf-8';
/** They change with a release or a setting: whoever stores one asks each time, and gets a 304. */
const ASK_EACH_TIME = 'private, no-cache';
/** They never change. */
const KEEP = 'private, max-age=86400, immutable';

/** By their paths below /api/v1. */
export async function makeDocsFiles({
  operations,
  bus,
  intake,
}: DocsSubjects): Promise<ReadonlyMap<string, DocsFile>> {
  const document = createOpenApiDocument(operations);
  const forms = readReleasedForms();
  const index = { items: forms.map(({ name, id, title }) => ({ name, id, title })) };
  return new Map([
    ['/openapi.json', documentFile(document)],
    ['/openapi.intake.json', documentFile(createIntakeDocument(intake))],
    ['/asyncapi.json', documentFile(createAsyncApiDocument(bus))],
    ['/schemas', documentFile(index)],
    ...forms.map(({ name, text }): [string, DocsFile] => [
      `/schemas/${name}`,
      stored(text, 'application/schema+json; charset=utf-8', KEEP),
    ]),
    ['/docs', fresh(await renderDocsPage(document), 'text/html; charset=utf-8')],
    ['/docs.css', fresh(read('docs-page.css'), 'text/css; charset=utf-8')],
    ['/docs.js', fresh(read('docs-page.js'), 'text/javascript; charset=utf-8')],
  ]);
}

const documentFile = (document: object) => stored(JSON.stringify(document), JSON_TYPE, ASK_EACH_TIME);

const fresh = (text: string, type: string): DocsFile => ({ text, headers: { 'Content-Type': type } });

function stored(text: string, type: string, caching: string): DocsFile {
  const headers = {
    'Content-Type': type,
    'Cache-Control': caching,
    ETag: `"${hash('sha256', text, 'base64url')}"`,
  };
  return { text, headers };
}

const read = (name: string) => readFileSync(new URL(name, import.meta.url), 'utf8');
