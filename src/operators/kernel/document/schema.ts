// What the page of the documentation says of schemas: the type of a value, and the fields of an object.

import { html } from 'hono/html';
import type { oas32 } from 'zod-openapi';

/** Text that is escaped already. */
export type Html = ReturnType<typeof html>;
export type Schema = oas32.SchemaObject | oas32.ReferenceObject;

/** Of Markdown it knows `code`. */
export function inline(text = ''): Html {
  return html`${text.split('`').map((part, at) => (at % 2 === 1 ? html`<code>${part}</code>` : part))}`;
}

/** Nothing without rows. */
export function table(head: readonly string[], rows: readonly (readonly (Html | string)[])[]): Html {
  if (rows.length === 0) return html``;
  return html`<table>
<thead><tr>${head.map((cell) => html`<th scope="col">${cell}</th>`)}</tr></thead>
<tbody>${rows.map((row) => html`<tr>${row.map((cell) => html`<td>${cell}</td>`)}</tr>\n`)}</tbody>
</table>`;
}

export function fields(schema: Schema | undefined): Html {
  const { properties, required } = keywordsOf(schema);
  if (properties === undefined) return html`<p>${typeOf(schema)}</p>`;
  const rows = Object.entries(properties).map(([name, property]) => [
    html`<code>${name}</code>`,
    html`${typeOf(property)}${required?.includes(name) === true ? '' : ', optional'}`,
    inline(keywordsOf(property).description),
  ]);
  return table(['Field', 'Type', 'Meaning'], rows);
}

export function typeOf(schema: Schema | undefined): Html | string {
  const keywords = keywordsOf(schema);
  if (keywords.$ref !== undefined) {
    const name = nameOf(keywords.$ref);
    return html`<a href="#shape-${name}">${name}</a>`;
  }
  const variants = keywords.anyOf ?? keywords.oneOf;
  if (variants !== undefined) return joined(variants.map(typeOf), ' or ');
  if (keywords.const !== undefined) return html`<code>${JSON.stringify(keywords.const)}</code>`;
  if (keywords.enum !== undefined) {
    return joined(
      keywords.enum.map((value) => html`<code>${String(value)}</code>`),
      ' ',
    );
  }
  if (keywords.type === 'array') return html`list of ${typeOf(keywords.items)}`;
  const { format, type = 'any', minimum = '', maximum = Number.MAX_SAFE_INTEGER } = keywords;
  const shown = format === 'date-time' ? 'time' : String(type);
  const bounds = type === 'integer' && maximum < Number.MAX_SAFE_INTEGER ? ` ${minimum}–${maximum}` : '';
  const fallback = keywords.default === undefined ? '' : `, ${JSON.stringify(keywords.default)} if not given`;
  return `${shown}${bounds}${fallback}`;
}

/** A schema's keywords, `$ref` among them. The types allow a boolean as a schema; our document has none. */
export function keywordsOf(schema: Schema | undefined): oas32.SchemaObjectValue {
  return typeof schema === 'object' ? { ...schema } : {};
}

/** What is meant by a reference to the document's components; other values as they are. */
export function follow<T extends object>(
  value: T | oas32.ReferenceObject,
  components: Readonly<Record<string, T | oas32.ReferenceObject>> = {},
): T {
  if (!('$ref' in value)) return value;
  const found = components[nameOf(value.$ref)];
  if (found === undefined || '$ref' in found) throw new Error(`nothing in the document is ${value.$ref}`);
  return found;
}

const nameOf = (ref: string) => ref.split('/').at(-1) ?? '';

export const joined = (parts: readonly (Html | string)[], separator: Html | string): Html =>
  html`${parts.map((part, at) => (at === 0 ? part : html`${separator}${part}`))}`;
