// GET /sources: each sender's rates, secrets, unknown fields and statuses (drift), and refused addresses.

import type { DatabaseConnection } from '../../ledger/index.ts';
import { defineRead, type Operation } from '../kernel/operation/operation.ts';
import { type Source, SourceList } from './contract.ts';
import { type ConfiguredSource, readSources, type SourceReport } from './queries.ts';

export function createSourceOperations(deps: {
  connection: DatabaseConnection;
  configuredSources: () => readonly ConfiguredSource[];
}): readonly Operation[] {
  return [
    defineRead({
      id: 'listSources',
      path: '/sources',
      tag: 'Statistics',
      summary: 'Each source: last delivery, rates, secrets, drift, and refused addresses',
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

function toItem(report: SourceReport): Source {
  const { source, configured, lastDeliveryAt, rates } = report;
  return {
    source,
    configured,
    last_delivery_at: lastDeliveryAt?.toISOString() ?? null,
    rates: { last_5m: rates.last5m, last_1h: rates.last1h, last_24h: rates.last24h },
    errors_24h: report.errors,
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
