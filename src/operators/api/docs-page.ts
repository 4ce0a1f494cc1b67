// The API's documentation as one page to read, made from its OpenAPI document. No scripts, and nothing from elsewhere:
// a page beside tokens should run nobody's code. All text is escaped; of Markdown it knows paragraphs and `code`.

import { createHash } from 'node:crypto';
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

/** What the page's one style is allowed by. */
export const DOCS_STYLE_SOURCE = `'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`;

/** The parts of the document that the page reads. */
type Schema = {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly description?: string;
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
};
type Parameter = {
  $ref?: string;
  name?: string;
  in?: string;
  required?: boolean;
  description?: string;
  schema?: Schema;
};
type Content = Readonly<Record<string, { schema?: Schema }>>;
type Described = { $ref?: string; description?: string; content?: Content };
type Operation = {
  operationId: string;
  summary: string;
  description?: string;
  tags: readonly string[];
  parameters?: readonly Parameter[];
  requestBody?: { content: Content };
  responses: Readonly<Record<string, Described>>;
};
type Document = {
  info: { title: string; version: string; description: string };
  tags: readonly { name: string }[];
  paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  components: {
    schemas?: Readonly<Record<string, Schema>>;
    parameters?: Readonly<Record<string, Parameter>>;
    responses?: Readonly<Record<string, Described>>;
  };
};

type Entry = { readonly method: string; readonly path: string; readonly operation: Operation };

export function renderDocsPage(openApi: OpenApiDocument): string {
  const document = openApi as unknown as Document;
  const entries = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
  );
  const { title, version, description } = document.info;
  const sections = document.tags.map(({ name }) => renderTag(name, entries, document));
  const schemas = Object.entries(document.components.schemas ?? {});
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escape(title)}</title>
<style>${STYLE}</style></head>
<body>
<h1>${escape(title)} <span class="dim">${escape(version)}</span></h1>
${prose(description)}
<nav><ul>${entries.map(({ method, path, operation }) => `<li><a href="#${escape(operation.operationId)}">${heading(method, path)}</a></li>`).join('\n')}</ul></nav>
${sections.join('\n')}
<h2>Shapes</h2>
${schemas.map(([name, schema]) => renderShape(name, schema)).join('\n')}
</body>
</html>
`;
}

function renderTag(name: string, entries: readonly Entry[], document: Document): string {
  const own = entries.filter(({ operation }) => operation.tags.includes(name));
  return `<h2>${escape(name)}</h2>\n${own.map((entry) => renderOperation(entry, document)).join('\n')}`;
}

function renderOperation({ method, path, operation }: Entry, { components }: Document): string {
  const parameters = (operation.parameters ?? []).map((parameter) =>
    follow(parameter, components.parameters),
  );
  const body = Object.values(operation.requestBody?.content ?? {})[0]?.schema;
  const answers = Object.entries(operation.responses).map(([status, answer]) => {
    const { description = '', content = {} } = follow(answer, components.responses);
    const forms = Object.entries(content).map(([type, { schema }]) =>
      schema === undefined || type !== 'application/json' ? `<code>${escape(type)}</code>` : typeOf(schema),
    );
    return [escape(status), inline(description), forms.join('<br>')];
  });
  return `<section id="${escape(operation.operationId)}">
<h3>${heading(method, `/api/v1${path}`)}</h3>
<p><strong>${escape(operation.summary)}</strong></p>
${prose(operation.description ?? '')}
${table(
  ['Parameter', 'In', 'Type', ''],
  parameters.map(({ name = '', in: place = '', required, description, schema = {} }) => [
    `<code>${escape(name)}</code>`,
    escape(place),
    `${typeOf(schema)}${required === true && place !== 'path' ? ', needed' : ''}`,
    inline(description ?? schema.description ?? ''),
  ]),
)}
${body === undefined ? '' : `<p class="dim">Body, as JSON:</p>${fields(body)}`}
${table(['Answer', '', ''], answers)}
</section>`;
}

function renderShape(name: string, schema: Schema): string {
  const variants = schema.oneOf ?? schema.anyOf;
  const content =
    variants === undefined ? fields(schema) : variants.map((variant) => fields(variant)).join('\n');
  return `<section id="shape-${escape(name)}"><h3>${escape(name)}</h3>${prose(schema.description ?? '')}${content}</section>`;
}

function fields(schema: Schema): string {
  if (schema.properties === undefined) return `<p>${typeOf(schema)}</p>`;
  const rows = Object.entries(schema.properties).map(([name, property]) => [
    `<code>${escape(name)}</code>`,
    `${typeOf(property)}${schema.required?.includes(name) === true ? '' : ', optional'}`,
    inline(property.description ?? ''),
  ]);
  return table(['Field', 'Type', ''], rows);
}

function typeOf(schema: Schema): string {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.split('/').at(-1) ?? '';
    return `<a href="#shape-${escape(name)}">${escape(name)}</a>`;
  }
  const variants = schema.anyOf ?? schema.oneOf;
  if (variants !== undefined) return variants.map(typeOf).join(' or ');
  if (schema.const !== undefined) return `<code>${escape(JSON.stringify(schema.const))}</code>`;
  if (schema.enum !== undefined) {
    return schema.enum.map((value) => `<code>${escape(String(value))}</code>`).join(' ');
  }
  if (schema.type === 'array') return `list of ${typeOf(schema.items ?? {})}`;
  const type = schema.format === 'date-time' ? 'time' : String(schema.type ?? 'any');
  const bounds =
    schema.type === 'integer' && schema.maximum !== undefined && schema.maximum < Number.MAX_SAFE_INTEGER
      ? ` ${schema.minimum ?? ''}–${schema.maximum}`
      : '';
  const fallback = schema.default === undefined ? '' : `, ${JSON.stringify(schema.default)} if not given`;
  return escape(`${type}${bounds}${fallback}`);
}

function follow<T extends { $ref?: string }>(
  value: T,
  components: Readonly<Record<string, T>> | undefined,
): T {
  const name = value.$ref?.split('/').at(-1);
  return name === undefined ? value : (components?.[name] ?? value);
}

const cells = (row: readonly string[], tag: string) => row.map((cell) => `<${tag}>${cell}</${tag}>`).join('');

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return '';
  return `<table><tr>${cells(head, 'th')}</tr>\n${rows.map((row) => `<tr>${cells(row, 'td')}</tr>`).join('\n')}</table>`;
}

const heading = (method: string, path: string) =>
  `<span class="verb">${escape(method)}</span> ${escape(path)}`;

function prose(text: string): string {
  return text
    .split(/\n\s*\n/)
    .filter(Boolean)
    .map((paragraph) => `<p>${inline(paragraph)}</p>`)
    .join('\n');
}

function inline(text: string): string {
  return escape(text).replaceAll(/`([^`]+)`/g, '<code>$1</code>');
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escape(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => ENTITIES[character] ?? '');
}
