// The OpenAPI document of the operators' API without a running service, for the committed copy.

import { pino } from 'pino';
import type { Config } from '../config.ts';
import { connectDatabase } from '../ledger/index.ts';
import { createOpenApiDocument, type OpenApiDocument } from './kernel/document/openapi.ts';
import { operationsOf } from './operations.ts';

/** Connects to nothing. */
export async function describeOperators(config: Config): Promise<OpenApiDocument> {
  await using started = new AsyncDisposableStack();
  const log = pino({ enabled: false });
  // It would connect at its first query, and there is none.
  const connection = connectDatabase({ ...config.database, name: 'description', connections: 1, log });
  started.defer(connection.close);
  const operations = operationsOf(config, {
    connection,
    tokenConnection: connection,
    configuredSources: () => [],
    watched: { conditions: async () => [], sendTest: async () => [] },
    hasQueue: async () => undefined,
    ending: AbortSignal.abort(),
    now: () => performance.now(),
    log,
    started,
  });
  return createOpenApiDocument(operations);
}
