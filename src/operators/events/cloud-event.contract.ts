// An event as a subscriber gets it.

import { z } from 'zod';
import { timestamp } from '../kernel/list/fields.contract.ts';

export const SentCloudEvent = z
  .object({
    exchange: z.string(),
    routing_key: z.string(),
    content_type: z.string(),
    message_id: z.string().describe('The event’s id.'),
    type: z.string(),
    timestamp: timestamp.describe('AMQP keeps whole seconds of it.'),
    body: z
      .string()
      .describe('The CloudEvent: JSON text in UTF-8, character for character as it is published.'),
  })
  .meta({ id: 'SentCloudEvent', description: 'The message that is published of an event.' });
