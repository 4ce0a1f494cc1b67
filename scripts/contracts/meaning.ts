// Tells what a form means apart from what explains it, so that other words make no other form.

type Schema = { readonly [keyword: string]: unknown };

/** They explain, and allow or forbid nothing. */
export const NOTES: readonly string[] = [
  'title',
  'description',
  '$comment',
  'examples',
  'default',
  'deprecated',
];

/** What a form allows, without what explains it: two forms with the same meaning are equal. */
export function meaningOf(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(meaningOf);
  if (typeof schema !== 'object' || schema === null) return schema;
  const entries = Object.entries(schema).filter(([keyword]) => ![...NOTES, '$id'].includes(keyword));
  return Object.fromEntries(
    entries.map(([keyword, value]) => {
      if (keyword === 'const' || keyword === 'enum') return [keyword, value];
      if (keyword === 'required') return [keyword, (value as string[]).toSorted()];
      const isOfFields = keyword === 'properties' || keyword === '$defs';
      return [keyword, isOfFields ? mapFields(value as Schema, meaningOf) : meaningOf(value)];
    }),
  );
}

const mapFields = (fields: Schema, change: (field: unknown) => unknown): Schema =>
  Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, change(field)]));
