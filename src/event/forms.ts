// The forms as JSON Schemas (draft 2020-12), made from the zod schemas that check. They are what contracts/ has, and what the
// documents and the types for others are made from. Unknown fields are allowed wherever the zod schema does not refuse or check
// them: events pass them through, and senders may add some.

import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { addressee, eventSchemas } from './data-forms.ts';
import { dataSchema, envelope, eventType } from './envelope.ts';
import type { Kind } from './id.ts';

/** A JSON Schema as plain JSON. */
export type Form = { readonly $id: string; readonly title: string; readonly [keyword: string]: unknown };

/** The `data` of an event, as subscribers read it. Its `$id` is the event's `dataschema`. */
export const dataForm = (kind: Kind): Form =>
  toForm(eventSchemas[kind], dataSchema(kind), `The data of a ${eventType(kind)} event`);

/** The attributes of an event: all kinds have these. */
export const envelopeForm = (): Form =>
  toForm(envelope, 'urn:tallyhook:schema:envelope:1', 'The envelope of an event, a CloudEvents 1.0 document');

/** The body that a sender sends: in this form a notification becomes an event. */
export const notificationForm = (kind: Kind): Form =>
  toForm(
    eventSchemas[kind],
    `urn:tallyhook:schema:notification.${kind}:1`,
    `A notification that becomes a ${eventType(kind)} event`,
  );

/** What every notification has. Without it none can be kept; with it and nothing else it is kept in quarantine. */
export const addresseeForm = (): Form =>
  toForm(
    addressee,
    'urn:tallyhook:schema:notification.addressee:1',
    'What every notification has: the job that it is for, and the job’s status',
  );

/**
 * A zod schema as a form.
 * @param $id the form's URN
 */
export function toForm(schema: z.ZodType, $id: string, title: string): Form {
  const { $schema, ...form } = z.toJSONSchema(schema, {
    io: 'input',
    override: ({ jsonSchema }) => allowUnknownFields(jsonSchema),
  });
  return { $schema, $id, title, ...form };
}

/** A strict object, a record or a catchall says itself what other fields may be: the form must say no less than the code checks. */
function allowUnknownFields(schema: z.core.JSONSchema.BaseSchema): void {
  if (schema.type !== 'object') return;
  const { additionalProperties: others, propertyNames: names } = schema;
  if (others === undefined || isDeepStrictEqual(others, {})) schema.additionalProperties = true;
  // In JSON every name is a string, so this says nothing.
  if (isDeepStrictEqual(names, { type: 'string' })) delete schema.propertyNames;
}
