// GET /sources: each sender's rates, secrets, unknown fields and statuses (drift), and refused addresses.

import { z } from 'zod';
import { type ConfiguredSource, readSources, type SourceReport } from '../audit/sources.ts';
import type { DatabaseConnection } from '../../ledger/index.ts';
import { defineRead, type Operation } from './operation.ts';
import { timestamp } from '../contract/items.ts';

const rate = z.number().describe('Deliveries a minute.');

const Source = z
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

const SourceList = z
  .object({ items: z.array(Source) })
  .meta({ id: 'SourceList', description: 'All sources, by name.' });

export function createSourceOperations(deps: {
  connection: DatabaseConnection;
  configuredSources: () => readonly ConfiguredSource[];
}): readonly Operation[] {
  return [
    defineRead({
      id: 'listSources',
      path: '/sources',
      tag: 'Statistics',
      summary: 'Each source: last delivery, rates, secrets, drift, and who knocks',
      role: 'viewer',
      answers: {
        200: { description: 'All sources, by name.', schema: SourceList },
      },
      run: async (_input, { caller }) => {
        const reports = await readSources(deps.connection, deps.configuredSources(), caller.sources);
        return { status: 200, body: { items: reports.map(toItem) } };
      },
    }),
  ];
}

function toItem(report: SourceReport): z.infer<typeof Source> {
  const { source, configured, lastDeliveryAt, rates } = report;
  return {
    source,
    configured,
    last_delivery_at: lastDeliveryAt?.toISOString() ?? null,
    rates: { last_5m: rates.last5m, last_1h: rates.last1h, last_24h: rates.last24h },
    secrets: report.secrets.map((secret) => ({
      fingerprint: secret.fingerprint,
      configured: secret.configured,
      last_matched_at: secret.lastMatchedAt?.toISOString() ?? null,
    })),
    drift: report.drift.map((drift) => ({
      kind: drift.kind,
      name: drift.name,
      status: drift.status,
      value_type: drift.valueType,
      count: drift.count,
      first_seen_at: drift.firstSeenAt.toISOString(),
      last_seen_at: drift.lastSeenAt.toISOString(),
      sample_delivery_id: drift.sampleDeliveryId,
    })),
    busiest_refused_addresses: [...report.refusedAddresses],
  };
}
