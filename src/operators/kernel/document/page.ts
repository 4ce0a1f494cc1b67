// The API's documentation as one HTML page, made from its OpenAPI document. It is whole without its script (docs-page.js), which
// adds a form to each operation. Nothing is loaded from other hosts, and `html` escapes all text.

import { html } from 'hono/html';
import type { oas32 } from 'zod-openapi';
import type { OpenApiDocument } from './openapi.ts';
import {
  fields,
  follow,
  type Html,
  inline,
  joined,
  keywordsOf,
  type Schema,
  table,
  typeOf,
} from './schema.ts';

type Components = oas32.ComponentsObject;
type Entry = { readonly method: string; readonly path: string; readonly operation: oas32.OperationObject };

/** @returns HTML */
export async function renderDocsPage({
  info,
  paths = {},
  tags = [],
  components = {},
}: OpenApiDocument): Promise<string> {
  const entries: readonly Entry[] = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
  );
  const groups = tags.map(({ name }) => ({
    name,
    entries: entries.filter(({ operation }) => operation.tags?.includes(name)),
  }));
  const schemas = Object.entries(components.schemas ?? {});
  const page = await html`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${info.title}</title>
<link rel="stylesheet" href="docs.css"><script type="module" src="docs.js"></script></head>
<body>
<header><h1>${info.title} <small>${info.version}</small></h1></header>
<nav aria-label="Operations"><ul>${groups.map(linksOf)}<li><a href="#shapes">Shapes</a></li></ul></nav>
<main>
<div class="about">${prose(info.description)}
<p>The same for programs: <a href="openapi.json">OpenAPI 3.1</a>. For senders: <a href="openapi.intake.json">OpenAPI 3.1 of the
webhook endpoint</a>. For subscribers: <a href="asyncapi.json">AsyncAPI 3.1</a>. The forms of events and of notifications:
<a href="schemas">JSON Schemas</a>.</p></div>
${groups.map((group) => html`<h2>${group.name}</h2>\n${group.entries.map((entry) => renderOperation(entry, components))}`)}
<h2 id="shapes">Shapes</h2>
${schemas.map(([name, schema]) => renderShape(name, schema))}
</main>
</body>
</html>
`;
  return page.toString(); // what `html` gives is an object
}

const linksOf = ({
  name,
  entries,
}: {
  readonly name: string;
  readonly entries: readonly Entry[];
}) => html`<li>${name}
<ul>${entries.map(({ method, path, operation: { operationId } }) => html`<li><a href="#${operationId}">${heading(method, path)}</a></li>\n`)}</ul></li>\n`;

function renderOperation({ method, path, operation }: Entry, components: Components): Html {
  const { operationId, summary, description, requestBody } = operation;
  const body = requestBody && Object.values(follow(requestBody, components.requestBodies).content)[0];
  return html`<section id="${operationId}" data-method="${method}" data-path="${path}">
<h3>${heading(method, `/api/v1${path}`)}</h3>
<p><strong>${summary}</strong></p>
${prose(description)}
${table(['Parameter', 'In', 'Type', 'Meaning'], parameterRows(operation, components))}
${body && 'schema' in body ? html`<p class="dim">Body, as JSON:</p>${fields(body.schema)}` : ''}
${table(['Answer', 'When', 'Content'], answerRows(operation, components))}
</section>
`;
}

function parameterRows({ parameters = [] }: oas32.OperationObject, components: Components): Html[][] {
  return parameters
    .map((parameter) => follow(parameter, components.parameters))
    .map(({ name, in: place, required, description, schema }) => [
      html`<code>${name}</code>`,
      html`${place}`,
      html`${typeOf(schema)}${required === true && place !== 'path' ? ', needed' : ''}`,
      inline(description ?? keywordsOf(schema).description),
    ]);
}

function answerRows({ responses = {} }: oas32.OperationObject, components: Components): Html[][] {
  return Object.entries<oas32.ResponseObject | oas32.ReferenceObject>(responses).map(([status, answer]) => {
    const { description, content = {} } = follow(answer, components.responses);
    const forms = Object.entries(content).map(([type, media]) =>
      'schema' in media && type === 'application/json' ? typeOf(media.schema) : html`<code>${type}</code>`,
    );
    return [html`${status}`, inline(description), joined(forms, html`<br>`)];
  });
}

function renderShape(name: string, schema: Schema): Html {
  const { description, oneOf, anyOf } = keywordsOf(schema);
  return html`<section id="shape-${name}"><h3>${name}</h3>${prose(description)}${(oneOf ?? anyOf ?? [schema]).map(fields)}</section>\n`;
}

const heading = (method: string, path: string) =>
  html`<span class="verb">${method.toUpperCase()}</span> ${path}`;

function prose(text = ''): Html[] {
  return text
    .split(/\n\s*\n/)
    .filter(Boolean)
    .map((paragraph) => html`<p>${inline(paragraph)}</p>\n`);
}
