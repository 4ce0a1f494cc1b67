// The intake's part of the composition: from a sender's socket to the ledger's statement, on connections that nothing else
// may use.

import { cached } from '../cached.ts';
import type { Config } from '../config.ts';
import { describeError } from '../errors.ts';
import {
  type Connections,
  type Readiness,
  type TrustedProxies,
  type HttpServer,
  startServer,
} from '../http/index.ts';
import {
  type Counts,
  connectDatabase,
  type DatabaseConnection,
  isMissingPartition,
  createFailureLog,
  makePartitions,
  recordDeliveries,
  addRefusals,
  createSecondLook,
} from '../ledger/index.ts';
import type { Parts } from '../parts.ts';
import { createIntakeApp, intakeHeaders } from './app.ts';
import { type BatchWriter, createBatchWriter } from './batch-writer.ts';
import { createBodies } from './bodies.ts';
import { createReceiver } from './receiver.ts';
import { createRefusalLog, type RefusalLog } from './refusal-log.ts';
import type { Sources } from './sources.ts';
import { createUnavailableLines } from './observer.ts';

/** While writes find no partition, one is looked for so often. */
const MISSING_PARTITION_MS = 1_000;

type IntakeParts = Parts & {
  readonly sources: Sources;
  readonly counts: Counts;
  readonly connections: Connections;
  readonly proxies: TrustedProxies;
  /** For making a partition that is missing. */
  readonly upkeepDatabase: DatabaseConnection;
  /** Something may be in the outbox. */
  readonly onRecorded: () => void;
};

export type Intake = {
  /** Whether the write queue takes more. */
  readonly hasRoom: () => boolean;
  readonly listen: (readiness: () => Promise<Readiness>) => Promise<HttpServer>;
};

export function composeIntake(config: Config, parts: IntakeParts): Intake {
  const { sources, counts, connections, proxies, metrics, now, log, started, graceMs } = parts;
  const { writer, refusals } = composeWriter(config, parts);
  const bodies = createBodies({ budgetBytes: config.http.unverifiedBodyBytes });
  const { gauge } = metrics;
  gauge(
    'tallyhook_write_queue_deliveries',
    'Deliveries that wait for their commit.',
    () => writer.waiting().deliveries,
  );
  gauge(
    'tallyhook_write_queue_bytes',
    'Bytes of deliveries that wait for their commit.',
    () => writer.waiting().bytes,
  );
  gauge('tallyhook_unverified_body_bytes', 'Held for bodies that are being read.', bodies.heldBytes);

  async function listen(readiness: () => Promise<Readiness>): Promise<HttpServer> {
    const receiver = createReceiver({
      keyRing: sources.current,
      writer,
      refusals,
      noticeDrift: counts.drift.notice,
      now,
    });
    const unavailable = createUnavailableLines({ log });
    started.defer(unavailable.close);
    const server = await startServer({
      ...config.http,
      connections,
      standingHeaders: intakeHeaders,
      listener: createIntakeApp({
        ...config.http,
        receiver,
        bodies,
        connections,
        now,
        log,
        unavailable,
        observe: ({ source, outcome, remoteAddress, seconds, fingerprint }) => {
          metrics.deliveries.inc({ source, outcome });
          metrics.answerSeconds.observe({ outcome }, seconds);
          counts.rollups.answered(source, outcome, seconds * 1_000);
          if (fingerprint !== undefined) counts.secretMatches.notice(source, fingerprint);
          const isRefused = outcome === 'unauthorized' || outcome === 'refused';
          if (isRefused && remoteAddress !== null) counts.refusedAddresses.notice(source, remoteAddress);
        },
        readiness,
        proxies,
      }),
    });
    started.defer(() => server.stop(graceMs()));
    return server;
  }

  return { hasRoom: writer.hasRoom, listen };
}

/** From a verified delivery to the ledger, on connections that nothing else may use. */
function composeWriter(
  config: Config,
  { now, log, metrics, started, counts, upkeepDatabase, onRecorded }: IntakeParts,
): { writer: BatchWriter; refusals: RefusalLog } {
  const intakeDatabase = connectDatabase({
    ...config.database,
    name: 'intake',
    connections: config.writer.batchesInFlight,
    log,
  });
  started.defer(intakeDatabase.close);
  const logFailure = createFailureLog({ now, log });
  const makeMissing = cached({
    maxAgeMs: MISSING_PARTITION_MS,
    ask: () =>
      makePartitions(upkeepDatabase).then(
        (made) => log.warn({ made }, 'partitions were missing'),
        (error: unknown) => log.warn({ err: describeError(error) }, 'the missing partitions cannot be made'),
      ),
    now,
  });

  const lookAgain = createSecondLook({ execute: intakeDatabase.execute, log });
  const writer = createBatchWriter({
    record: async (batch) => {
      const recorded = await recordDeliveries(intakeDatabase, batch);
      onRecorded();
      return lookAgain(batch, recorded);
    },
    limits: config.writer,
    now,
    observe: ({ deliveries, seconds, failed, error }) => {
      metrics.batchDeliveries.observe(deliveries);
      metrics.batchSeconds.observe({ result: failed ? 'failed' : 'committed' }, seconds);
      if (failed) logFailure(error);
      if (isMissingPartition(error)) void makeMissing();
    },
  });
  const refusals = createRefusalLog({
    writer,
    addRefusals: (refused) => addRefusals(counts.connection, refused),
    rowsPerMinute: config.sources.refusedRowsPerMinute,
    patienceMs: config.http.answerDeadlineMs,
    now,
    log,
  });
  started.defer(refusals.close);
  return { writer, refusals };
}
