// Makes all operations of the operators' API, with what each of them needs.

import type { Parts } from '../base/parts.ts';
import type { Config } from '../config.ts';
import type { DatabaseConnection } from '../ledger/index.ts';
import { createDifferenceOperations } from './deliveries/difference.operations.ts';
import { createDeliveryOperations } from './deliveries/operations.ts';
import { readDeliveriesNamed } from './deliveries/queries.ts';
import { createDestinationOperations } from './destinations/operations.ts';
import { createCloudEventOperations } from './events/cloud-event.operations.ts';
import { PUBLICATIONS_SHOWN_MAX } from './events/contract.ts';
import { createEventOperations } from './events/operations.ts';
import { createExportOperations } from './export/operations.ts';
import { createGroupOperations } from './groups/operations.ts';
import { createIncidentOperations, type Watched } from './incidents/operations.ts';
import { isSessionOpen } from './kernel/access/sessions.queries.ts';
import { isTokenValid } from './kernel/access/tokens.queries.ts';
import { listOperation } from './kernel/list/list.operations.ts';
import type { Operation } from './kernel/operation/operation.ts';
import type { IsTokenValid } from './kernel/operation/token-check.ts';
import { LISTS } from './lists.operations.ts';
import { createListeners } from './live/listeners.ts';
import { createLiveOperations } from './live/operations.ts';
import { createLive } from './live/queries.ts';
import { listOutbox } from './outbox/operations.ts';
import { createOutboxOrders } from './outbox/orders.operations.ts';
import { lastPublicationsOf, readPublicationsNamed } from './publications/queries.ts';
import { createQuarantineOrders } from './quarantine/operations.ts';
import { createReplayOperations, type HasQueue } from './replays/operations.ts';
import { createReplicaOperations } from './replicas/operations.ts';
import { createSearchOperations } from './search/operations.ts';
import { createSessionOperations } from './sessions/operations.ts';
import { createSizeOperations } from './sizes/operations.ts';
import { createSourceOperations } from './sources/operations.ts';
import type { ConfiguredSource } from './sources/queries.ts';
import { createStatsOperations } from './statistics/operations.ts';
import { createStoryOperations } from './story/operations.ts';
import { createTokenOperations } from './tokens/operations.ts';

/** A commit may take so much longer than the statement time-out of deliveries and the relay to be visible. */
const COMMIT_SLACK_MS = 1_000;

export type OperationParts = Pick<Parts, 'log' | 'now' | 'started'> & {
  readonly connection: DatabaseConnection;
  /** For looking up tokens. */
  readonly tokenConnection: DatabaseConnection;
  /** The sources as they are configured now. */
  readonly configuredSources: () => readonly ConfiguredSource[];
  readonly watched: Watched;
  readonly hasQueue: HasQueue;
  /** Ends streams, which do not end by themselves. */
  readonly ending: AbortSignal;
};

/** All operations of the API. Routes and the document are made from this list. */
export function operationsOf(config: Config, parts: OperationParts): readonly Operation[] {
  const { connection, tokenConnection, configuredSources, log } = parts;
  const { environment } = config.operator;
  const { jobs, deliveries, events, publications, quarantine, incidents } = LISTS;
  const isValid: IsTokenValid = async (tokenId, sessionId) =>
    (await isTokenValid(tokenConnection, tokenId)) &&
    (sessionId === undefined || (await isSessionOpen(tokenConnection, sessionId)));
  return [
    ...[jobs, deliveries, events, publications, quarantine].map((list) => listOperation(list, connection)),
    listOutbox(connection),
    ...createGroupOperations({ connection }),
    listOperation(incidents, connection),
    ...createIncidentOperations(parts),
    ...createDeliveryOperations({ connection }),
    ...createEventOperations({
      connection,
      bus: config.broker,
      publicationsOf: (id) => lastPublicationsOf(connection.db, id, PUBLICATIONS_SHOWN_MAX),
    }),
    ...createDifferenceOperations({ connection }),
    ...createCloudEventOperations({ connection, bus: config.broker }),
    ...createStoryOperations({ connection }),
    ...createExportOperations({ connection, isTokenValid: isValid, log }),
    listOperation(LISTS['operator-log'], connection),
    ...createTokenOperations({ connection, environment }),
    ...createSessionOperations({ connection }),
    ...createReplayOperations({ connection, hasQueue: parts.hasQueue }),
    ...createQuarantineOrders(),
    ...createOutboxOrders(),
    ...createStatsOperations({ connection, now: Date.now }),
    ...liveOperations(config, parts, isValid),
    ...createSourceOperations({ connection, configuredSources }),
    ...createReplicaOperations({ connection }),
    ...createSizeOperations({ connection, retentionDays: config.database.retentionDays }),
    ...createDestinationOperations({ ...config, configuredSources, now: parts.now }),
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
