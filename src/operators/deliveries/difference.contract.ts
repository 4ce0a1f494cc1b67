// What differs between a delivery and the event that it contradicts.

import { z } from 'zod';
import { Event } from '../events/contract.ts';
import { Delivery } from './contract.ts';

export const DIFFERENCES_MAX = 100;
/** Characters of a value, and of a path. */
export const DIFFERENCE_TEXT_MAX = 1_000;

const value = z.string().max(DIFFERENCE_TEXT_MAX).nullable();

export const FieldDifference = z
  .object({
    path: z
      .string()
      .max(DIFFERENCE_TEXT_MAX)
      .describe('A JSON pointer (RFC 6901): `/error_message`. Empty for the whole body.'),
    event: value.describe(
      'The value in the body that made the event, as JSON text. Null if it is not there.',
    ),
    delivery: value.describe('The value in the body of the delivery, as JSON text. Null if it is not there.'),
    cut: z
      .array(z.enum(['path', 'event', 'delivery']))
      .describe(`Which of these texts are longer than ${DIFFERENCE_TEXT_MAX} characters, and cut.`),
  })
  .meta({
    id: 'FieldDifference',
    description: 'A field with another value. All digits of numbers are kept.',
  });

export const Difference = z
  .object({
    delivery: Delivery.describe('The delivery with the outcome `conflict`.'),
    event: Event.describe('The event that it contradicts.'),
    first_delivery: Delivery.describe('The delivery that made the event.'),
    differences: z
      .array(FieldDifference)
      .max(DIFFERENCES_MAX)
      .describe('In the order of the body that made the event; then what only the delivery has.'),
    has_more: z.boolean().describe(`There are more than ${DIFFERENCES_MAX}.`),
  })
  .meta({ id: 'Difference', description: 'How a delivery contradicts an event.' });

export type FieldDifference = z.infer<typeof FieldDifference>;
