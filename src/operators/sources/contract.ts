// Sources: the fields that the API shows.

import { z } from 'zod';
import { timestamp } from '../kernel/list/fields.contract.ts';

const rate = z.number().describe('Deliveries a minute.');

export const Source = z
  .object({
    source: z.string(),
    configured: z.boolean().describe('It is set up on the replica that answers.'),
    last_delivery_at: timestamp.nullable().describe('Null if the ledger has none, or no longer has it.'),
    rates: z
      .object({ last_5m: rate, last_1h: rate, last_24h: rate })
      .describe('From the statistics, including those answered with 503.'),
    errors_24h: z
      .record(z.string(), z.int())
      .optional()
      .describe('Deliveries of the last 24 hours by outcome, but for accepted ones and duplicates.'),
    secrets: z
      .array(
        z.object({
          fingerprint: z.string(),
          configured: z.boolean(),
          last_matched_at: timestamp
            .nullable()
            .describe('Accurate to about ten seconds. Null if it never matched.'),
        }),
      )
      .describe('You can remove an old secret when it no longer matches.'),
    drift: z
      .array(
        z.object({
          kind: z.enum(['field', 'status']),
          name: z.string().describe('The field, or the status itself; cut to 128 characters.'),
          status: z.string().describe('Of the bodies that had it.'),
          value_type: z.string().describe('The type of the newest value, as JSON calls it.'),
          count: z.int(),
          first_seen_at: timestamp,
          last_seen_at: timestamp,
          sample_delivery_id: z.uuid().describe('The newest delivery that had it. Its body is kept.'),
        }),
      )
      .describe('Fields and statuses that the schemas do not know: at most 200 names.'),
    busiest_refused_addresses: z
      .array(
        z.object({
          address: z.string(),
          count: z.int().describe('Refused deliveries: a lower bound, without the last seconds.'),
        }),
      )
      .max(10)
      .describe('The addresses with the most refused deliveries in the last 24 hours, busiest first.'),
  })
  .meta({
    id: 'Source',
    description: 'A sender. `unknown` stands for all names that are not set up.',
  });

export const SourceList = z
  .object({ items: z.array(Source) })
  .meta({ id: 'SourceList', description: 'All sources, by name.' });

export type Source = z.infer<typeof Source>;
