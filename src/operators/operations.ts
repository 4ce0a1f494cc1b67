// The list of all operations of the operators' API. Its routes and its OpenAPI document are made from this list.

import { isSessionOpen } from './access/sessions.ts';
import { isTokenValid } from './access/tokens.ts';
import { readDeliveriesNamed } from './audit/deliveries.ts';
import { createLive } from './audit/live.ts';
import { readPublicationsNamed } from './audit/publications.ts';
import type { ConfiguredSource } from './audit/sources.ts';
import { createDifferenceOperations } from './api/difference-operations.ts';
import { createCloudEventOperations } from './api/cloud-event-operations.ts';
import { createExportOperations } from './api/export-operations.ts';
import { createGroupOperations } from './api/group-operations.ts';
import { createItemOperations } from './api/item-operations.ts';
import { createListOperations } from './api/list-operations.ts';
import { listOperation, LISTS } from './api/lists.ts';
import { createListeners } from './api/listeners.ts';
import { createLiveOperations } from './api/live-operations.ts';
import type { Operation } from './api/operation.ts';
import { createOutboxOrders } from './api/outbox-orders.ts';
import { createQuarantineOrders } from './api/quarantine-orders.ts';
import { createReplayOperations } from './api/replay-operations.ts';
import { createReplicaOperations } from './api/replica-operations.ts';
import { createSearchOperations } from './api/search-operations.ts';
import { createSessionOperations } from './api/session-operations.ts';
import { createSourceOperations } from './api/source-operations.ts';
import { createStatsOperations } from './api/stats-operations.ts';
import { createStoryOperations } from './api/story-operations.ts';
import type { IsTokenValid } from './api/token-check.ts';
import { createTokenOperations } from './api/token-operations.ts';
import type { Config } from '../config.ts';
import type { DatabaseConnection } from '../ledger/index.ts';
import type { Parts } from '../parts.ts';

/** A commit may take so much longer than the statement time-out of deliveries and the relay to be visible. */
const COMMIT_SLACK_MS = 1_000;

export type OperationParts = Pick<Parts, 'log' | 'now' | 'started'> & {
  readonly connection: DatabaseConnection;
  /** For looking up tokens. */
  readonly tokenConnection: DatabaseConnection;
  /** The sources as they are configured now. */
  readonly configuredSources: () => readonly ConfiguredSource[];
  /** Ends streams, which do not end by themselves. */
  readonly ending: AbortSignal;
};

/** All operations of the API. Routes and the document are made from this list. */
export function operationsOf(config: Config, parts: OperationParts): readonly Operation[] {
  const { connection, tokenConnection, configuredSources, log } = parts;
  const { environment } = config.operator;
  const isValid: IsTokenValid = async (tokenId, sessionId) =>
    (await isTokenValid(tokenConnection, tokenId)) &&
    (sessionId === undefined || (await isSessionOpen(tokenConnection, sessionId)));
  return [
    ...createListOperations({ connection }),
    ...createGroupOperations({ connection }),
    ...createItemOperations({ connection }),
    ...createDifferenceOperations({ connection }),
    ...createCloudEventOperations({ connection, bus: config.broker }),
    ...createStoryOperations({ connection }),
    ...createExportOperations({ connection, isTokenValid: isValid, log }),
    listOperation(LISTS['operator-log'], connection),
    ...createTokenOperations({ connection, environment }),
    ...createSessionOperations({ connection }),
    ...createReplayOperations({ connection }),
    ...createQuarantineOrders(),
    ...createOutboxOrders(),
    ...createStatsOperations({ connection, now: Date.now }),
    ...liveOperations(config, parts, isValid),
    ...createSourceOperations({ connection, configuredSources }),
    ...createReplicaOperations({ connection }),
    ...createSearchOperations({ connection, configuredSources }),
  ];
}

function liveOperations(
  config: Config,
  { connection, ending, now, log, started }: OperationParts,
  isValid: IsTokenValid,
): readonly Operation[] {
  const listeners = createListeners({ isTokenValid: isValid, now, log });
  ending.addEventListener('abort', listeners.end);
  const live = createLive({
    connection,
    readers: {
      deliveries: (keys) => readDeliveriesNamed(connection.db, keys),
      publications: (keys) => readPublicationsNamed(connection.db, keys),
    },
    lateMs: config.database.statementTimeoutMs + COMMIT_SLACK_MS,
    log,
  });
  started.defer(live.close);
  return createLiveOperations({ live, listeners });
}
