// The intake's part of the composition: from a sender's socket to the ledger's statement, on database connections that
// nothing else uses.

import type { Express } from 'express';
import { cached } from '../base/collections/cached.ts';
import type { Config } from '../config.ts';
import { describeError } from '../base/errors.ts';
import {
  type Connections,
  composeUnparsed,
  createAppBehind,
  finishApp,
  type HttpServer,
  livez,
  NOSNIFF,
  type Readiness,
  readyz,
  type StandingHeaders,
  startServer,
  type TrustedProxies,
} from '../http/index.ts';
import {
  addRefusals,
  type Counts,
  connectDatabase,
  createFailureLog,
  type DatabaseConnection,
  type DeliveryRecord,
  isMissingPartition,
  makePartitions,
  type RecordedDelivery,
  recordDeliveries,
  type TalliedDelivery,
  type WriteMark,
} from '../ledger/index.ts';
import type { Logger } from '../base/log/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Parts } from '../base/parts.ts';
import type { Backpressure } from './write-patience.ts';
import { type BatchWriter, createBatchWriter } from './batch-writer.ts';
import { type Bodies, createBodies } from './bodies.ts';
import { createDeadlines } from './deadlines.ts';
import { type DeliveryOptions, deliveryHandler, wrongMethodHandler } from './delivery.ts';
import { createDeliveryObserver } from './observer.ts';
import { createReceiver } from './receiver.ts';
import { createEventLoopLoad } from './event-loop-load.ts';
import { createRefusalLog } from './refusal-log.ts';
import { createTrial } from './signature-trial.ts';
import type { Sources } from './sources.ts';
import { createWriteHealth, type WriteHealth } from './write-health.ts';

/** While writes find no partition, the missing ones are made this often at most. */
const MISSING_PARTITION_MS = 1_000;

type IntakeParts = Parts & {
  readonly sources: Sources;
  readonly counts: Counts;
  readonly connections: Connections;
  readonly proxies: TrustedProxies;
  /** Makes partitions that are missing. */
  readonly upkeepDatabase: DatabaseConnection;
  /** Called after the commit of a write, with the id of one of its deliveries. */
  readonly onAcknowledged: (deliveryId: string) => void;
  /** Every write goes through it: its events are handed to the relay. */
  readonly handOff: {
    readonly write: (
      batch: readonly DeliveryRecord[],
      record: (mark: WriteMark) => Promise<TalliedDelivery[]>,
    ) => Promise<RecordedDelivery[]>;
  };
  /** Of the relay, which has to publish what is written. */
  readonly backpressure: Backpressure;
};

export type Intake = {
  /** Whether the write queue takes more. */
  readonly hasRoom: () => boolean;
  /** Whether deliveries can be recorded. */
  readonly canRecord: () => Promise<boolean>;
  /** Opens the connections that deliveries are recorded by. To be called once the ledger is there. Never rejects. */
  readonly prepare: () => Promise<void>;
  readonly listen: (readiness: () => Promise<Readiness>) => Promise<HttpServer>;
};

export function composeIntake(config: Config, parts: IntakeParts): Intake {
  const { sources, counts, connections, proxies, metrics, now, log, started, graceMs } = parts;
  const { writer, health, openAll } = composeWriter(config, parts);
  const refusals = createRefusalLog({
    writer,
    addRefusals: (refused) => addRefusals(counts.connection, refused),
    rowsPerMinute: config.sources.refusedRowsPerMinute,
    patienceMs: config.http.answerDeadlineMs,
    now,
    log,
  });
  const eventLoopLoad = createEventLoopLoad();
  started.defer(eventLoopLoad.close);
  const trial = createTrial({ keyRing: sources.current, isBusy: eventLoopLoad.isBusy, now });
  const observer = createDeliveryObserver({ metrics, counts, refusals, trial, log });
  started.defer(observer.close);
  const deadlines = createDeadlines({ now });
  const receiver = createReceiver({ keyRing: sources.current, writer, deadlines, observer });
  const bodies = createBodies({ budgetBytes: config.http.unverifiedBodyBytes, deadlines });
  exposeGauges({ metrics, writer, bodies });

  async function listen(readiness: () => Promise<Readiness>): Promise<HttpServer> {
    const delivery = { ...config.http, receiver, bodies, observer, connections, now };
    const server = await startServer({
      ...config.http,
      connections,
      unparsed: composeUnparsed('intake', parts),
      standingHeaders,
      listener: createIntakeApp({ delivery, readiness, proxies, log }),
    });
    started.defer(() => server.stop(graceMs()));
    return server;
  }

  return { hasRoom: writer.hasRoom, canRecord: health.isUp, prepare: openAll, listen };
}

/** Headers of the answers that the server gives before Express runs. */
const standingHeaders: StandingHeaders = async () => NOSNIFF;

function createIntakeApp(options: {
  delivery: DeliveryOptions;
  readiness: () => Promise<Readiness>;
  proxies: TrustedProxies;
  log: Logger;
}): Express {
  const { delivery, readiness, proxies, log } = options;
  const app = createAppBehind(proxies);
  // The first route, so that a delivery is at its handler at once.
  app.route('/webhooks{/:source}').post(deliveryHandler(delivery)).all(wrongMethodHandler(delivery));
  app.use((_request, response, next) => {
    response.set(NOSNIFF);
    next();
  });
  app.get('/livez', livez);
  app.get('/readyz', readyz(readiness));
  return finishApp(app, log);
}

/** From a verified delivery to the ledger. */
function composeWriter(
  config: Config,
  {
    now,
    log,
    metrics,
    started,
    identity,
    sessions,
    upkeepDatabase,
    onAcknowledged,
    handOff,
    backpressure,
  }: IntakeParts,
): { readonly writer: BatchWriter; readonly health: WriteHealth; readonly openAll: () => Promise<void> } {
  const database = connectDatabase({
    ...config.database,
    name: 'intake',
    connections: config.writer.batchesInFlight,
    idle: 'kept',
    identity,
    sessions,
    log,
  });
  started.defer(database.close);
  const logFailure = createFailureLog({ now, log });
  const health = createWriteHealth({ connection: database, now, log });
  const makeMissing = cached({
    maxAgeMs: MISSING_PARTITION_MS,
    ask: () =>
      makePartitions(upkeepDatabase).then(
        (made) => log.warn({ made }, 'partitions were missing'),
        (error: unknown) => log.warn({ err: describeError(error) }, 'the missing partitions cannot be made'),
      ),
    now,
  });
  const writer = createBatchWriter({
    record: async (batch) => {
      const recorded = await handOff.write(batch, (mark) => recordDeliveries(database, batch, mark));
      onAcknowledged(batch.at(-1)?.id ?? '');
      return recorded;
    },
    limits: config.writer,
    backpressure,
    now,
    observe: ({ deliveries, seconds, failed, error }) => {
      metrics.batchDeliveries.observe({}, deliveries);
      metrics.batchSeconds.observe({ result: failed ? 'failed' : 'committed' }, seconds);
      health.note(error);
      if (failed) logFailure(error);
      if (isMissingPartition(error)) void makeMissing();
    },
  });
  return { writer, health, openAll: database.openAll };
}

function exposeGauges({
  metrics: { gauge },
  writer,
  bodies,
}: {
  metrics: Metrics;
  writer: BatchWriter;
  bodies: Bodies;
}): void {
  gauge('tallyhook_write_queue_deliveries', () => writer.waiting().deliveries);
  gauge('tallyhook_write_queue_bytes', () => writer.waiting().bytes);
  gauge('tallyhook_unverified_body_bytes', bodies.bufferedBytes);
}
