// Sources: the fields that the API shows.

import { z } from 'zod';
import { timestamp } from './fields.ts';

const rate = z.number().describe('Deliveries a minute.');

export const Source = z
  .object({
    source: z.string(),
    configured: z.boolean().describe('It is set up on the replica that answers.'),
    last_delivery_at: timestamp.nullable().describe('Null where the ledger has none, or no longer.'),
    rates: z
      .object({ last_5m: rate, last_1h: rate, last_24h: rate })
      .describe('From the statistics: of all that was answered, 503 too.'),
    secrets: z
      .array(
        z.object({
          fingerprint: z.string(),
          configured: z.boolean(),
          last_matched_at: timestamp
            .nullable()
            .describe('Right to about ten seconds, also for a delivery long dropped. Null: never.'),
        }),
      )
      .describe('An old secret can be dropped once it no longer matches.'),
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
      .describe(
        'What accepted events and quarantined statuses had that our schemas do not know: 200 names at most.',
      ),
    busiest_refused_addresses: z
      .array(
        z.object({
          address: z.string(),
          count: z.int().describe('Of refused deliveries, at least; all but the last seconds.'),
        }),
      )
      .max(10)
      .describe('Where deliveries came from that were refused in the last 24 hours, the busiest first.'),
  })
  .meta({
    id: 'Source',
    description: 'A sender. `unknown` stands for all who used a name that is not set up.',
  });

export const SourceList = z
  .object({ items: z.array(Source) })
  .meta({ id: 'SourceList', description: 'All sources, by name.' });

export type Source = z.infer<typeof Source>;
