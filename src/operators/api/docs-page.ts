// The API's documentation as one HTML page, made from its OpenAPI document. Without scripts and without anything from other
// hosts, since the page is read next to tokens. All text is escaped; of Markdown it knows paragraphs and `code`.

import { createHash } from 'node:crypto';
import type { oas32 } from 'zod-openapi';
import type { OpenApiDocument } from './openapi.ts';

const STYLE = `
:root { color-scheme: light dark; --line: #8884; --dim: #777; --accent: #0a6cbd; }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2, h3 { line-height: 1.25; } h2 { margin-top: 3rem; border-bottom: 1px solid var(--line); }
h3 { margin: 2.2rem 0 .3rem; font: 600 1rem/1.4 ui-monospace, monospace; }
code { font: .9em ui-monospace, monospace; background: #8882; padding: .1em .3em; border-radius: .25em; }
a { color: var(--accent); } nav ul { columns: 20rem; padding-left: 1.2rem; } nav li { break-inside: avoid; }
table { border-collapse: collapse; width: 100%; margin: .6rem 0; font-size: .93rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line); }
th { font-weight: 600; color: var(--dim); } td:first-child { white-space: nowrap; }
.verb { color: var(--accent); text-transform: uppercase; } .dim { color: var(--dim); }
`;

/** The source of the Content-Security-Policy that allows the page's style. */
export const DOCS_STYLE_SOURCE = `'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`;

type Components = oas32.ComponentsObject;
type Schema = oas32.SchemaObject | oas32.ReferenceObject;
type Entry = { readonly method: string; readonly path: string; readonly operation: oas32.OperationObject };

export function renderDocsPage({ info, paths = {}, tags = [], components = {} }: OpenApiDocument): string {
  const entries: readonly Entry[] = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
  );
  const sections = tags.map(({ name }) => renderTag(name, entries, components));
  const schemas = Object.entries(components.schemas ?? {});
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escape(info.title)}</title>
<style>${STYLE}</style></head>
<body>
<h1>${escape(info.title)} <span class="dim">${escape(info.version)}</span></h1>
${prose(info.description)}
<nav><ul>${entries.map(({ method, path, operation }) => `<li><a href="#${escape(operation.operationId)}">${heading(method, path)}</a></li>`).join('\n')}</ul></nav>
${sections.join('\n')}
<h2>Shapes</h2>
${schemas.map(([name, schema]) => renderShape(name, schema)).join('\n')}
</body>
</html>
`;
}

function renderTag(name: string, entries: readonly Entry[], components: Components): string {
  const own = entries.filter(({ operation }) => operation.tags?.includes(name));
  return `<h2>${escape(name)}</h2>\n${own.map((entry) => renderOperation(entry, components)).join('\n')}`;
}

function renderOperation({ method, path, operation }: Entry, components: Components): string {
  const { operationId, summary, description, parameters = [], requestBody, responses = {} } = operation;
  const body = requestBody && Object.values(follow(requestBody, components.requestBodies).content)[0];
  const answers = Object.entries<oas32.ResponseObject | oas32.ReferenceObject>(responses).map(
    ([status, answer]) => {
      const { description: when, content = {} } = follow(answer, components.responses);
      const forms = Object.entries(content).map(([type, media]) =>
        'schema' in media && type === 'application/json'
          ? typeOf(media.schema)
          : `<code>${escape(type)}</code>`,
      );
      return [escape(status), inline(when), forms.join('<br>')];
    },
  );
  return `<section id="${escape(operationId)}">
<h3>${heading(method, `/api/v1${path}`)}</h3>
<p><strong>${escape(summary)}</strong></p>
${prose(description)}
${table(
  ['Parameter', 'In', 'Type', ''],
  parameters
    .map((parameter) => follow(parameter, components.parameters))
    .map(({ name, in: place, required, description: about, schema }) => [
      `<code>${escape(name)}</code>`,
      escape(place),
      `${typeOf(schema)}${required === true && place !== 'path' ? ', needed' : ''}`,
      inline(about ?? keywordsOf(schema).description),
    ]),
)}
${body && 'schema' in body ? `<p class="dim">Body, as JSON:</p>${fields(body.schema)}` : ''}
${table(['Answer', '', ''], answers)}
</section>`;
}

function renderShape(name: string, schema: Schema): string {
  const { description, oneOf, anyOf } = keywordsOf(schema);
  const content = (oneOf ?? anyOf ?? [schema]).map(fields).join('\n');
  return `<section id="shape-${escape(name)}"><h3>${escape(name)}</h3>${prose(description)}${content}</section>`;
}

function fields(schema: Schema | undefined): string {
  const { properties, required } = keywordsOf(schema);
  if (properties === undefined) return `<p>${typeOf(schema)}</p>`;
  const rows = Object.entries(properties).map(([name, property]) => [
    `<code>${escape(name)}</code>`,
    `${typeOf(property)}${required?.includes(name) === true ? '' : ', optional'}`,
    inline(keywordsOf(property).description),
  ]);
  return table(['Field', 'Type', ''], rows);
}

function typeOf(schema: Schema | undefined): string {
  const keywords = keywordsOf(schema);
  if (keywords.$ref !== undefined) {
    const name = nameOf(keywords.$ref);
    return `<a href="#shape-${escape(name)}">${escape(name)}</a>`;
  }
  const variants = keywords.anyOf ?? keywords.oneOf;
  if (variants !== undefined) return variants.map(typeOf).join(' or ');
  if (keywords.const !== undefined) return `<code>${escape(JSON.stringify(keywords.const))}</code>`;
  if (keywords.enum !== undefined) {
    return keywords.enum.map((value) => `<code>${escape(String(value))}</code>`).join(' ');
  }
  if (keywords.type === 'array') return `list of ${typeOf(keywords.items)}`;
  const { format, type = 'any', minimum = '', maximum = Number.MAX_SAFE_INTEGER } = keywords;
  const shown = format === 'date-time' ? 'time' : String(type);
  const bounds = type === 'integer' && maximum < Number.MAX_SAFE_INTEGER ? ` ${minimum}–${maximum}` : '';
  const fallback = keywords.default === undefined ? '' : `, ${JSON.stringify(keywords.default)} if not given`;
  return escape(`${shown}${bounds}${fallback}`);
}

/** A schema's keywords, `$ref` among them. The types allow a boolean as a schema; our document has none. */
function keywordsOf(schema: Schema | undefined): oas32.SchemaObjectValue {
  return typeof schema === 'object' ? { ...schema } : {};
}

/** What is meant by a reference to the document's components; other values as they are. */
function follow<T extends object>(
  value: T | oas32.ReferenceObject,
  components: Readonly<Record<string, T | oas32.ReferenceObject>> = {},
): T {
  if (!('$ref' in value)) return value;
  const found = components[nameOf(value.$ref)];
  if (found === undefined || '$ref' in found) throw new Error(`nothing in the document is ${value.$ref}`);
  return found;
}

const nameOf = (ref: string) => ref.split('/').at(-1) ?? '';

const cells = (row: readonly string[], tag: string) => row.map((cell) => `<${tag}>${cell}</${tag}>`).join('');

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return '';
  return `<table><tr>${cells(head, 'th')}</tr>\n${rows.map((row) => `<tr>${cells(row, 'td')}</tr>`).join('\n')}</table>`;
}

const heading = (method: string, path: string) =>
  `<span class="verb">${escape(method)}</span> ${escape(path)}`;

function prose(text = ''): string {
  return text
    .split(/\n\s*\n/)
    .filter(Boolean)
    .map((paragraph) => `<p>${inline(paragraph)}</p>`)
    .join('\n');
}

function inline(text = ''): string {
  return escape(text).replaceAll(/`([^`]+)`/g, '<code>$1</code>');
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escape(text = ''): string {
  return text.replaceAll(/[&<>"']/g, (character) => ENTITIES[character] ?? '');
}
