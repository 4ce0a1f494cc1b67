// The TypeScript declarations in contracts/types/events.ts, made by json-schema-to-typescript.

import { compile } from 'json-schema-to-typescript';
import { KINDS } from '../../src/event/index.ts';
import { eventName, type FieldForm, listTypes, type TypeForm } from './type-source.ts';

type Input = Parameters<typeof compile>[0];

const HEAD = `// The events that subscribers get. Made by \`npm run contracts\` from the forms in contracts/events: do not edit.`;

const refTo = (name: string): Input => ({ $ref: `#/definitions/${name}` });

/** One module, with types only. */
export async function makeTypeScript(): Promise<string> {
  const root: Input = {
    title: 'ConversionEvent',
    description: 'Any of the events. Tell them apart by `type`.',
    anyOf: KINDS.map((kind) => refTo(eventName(kind))),
    definitions: Object.fromEntries(listTypes().map((form) => [form.name, toInput(form)])),
  };
  return compile(root, 'ConversionEvent', {
    bannerComment: HEAD,
    // An array with a limit would become a union of tuples, one for each length.
    ignoreMinAndMaxItems: true,
    style: { singleQuote: true, printWidth: 110 },
  });
}

/** Open: an event may have fields that this version does not know. */
function toInput({ name, description, properties, required, extends: base }: TypeForm): Input {
  return {
    title: name,
    description,
    type: 'object',
    ...(base === undefined ? {} : { extends: refTo(base) }),
    properties: Object.fromEntries(Object.entries(properties).map(([field, form]) => [field, toField(form)])),
    required: [...required],
    additionalProperties: true,
  } as Input;
}

const toField = ({ $ref, ...form }: FieldForm): Input => ($ref === undefined ? (form as Input) : refTo($ref));
