// Every complete request leaves a trace in the ledger: an authentic one has a row of its own that agrees with its answer; a
// refused one has a row or, above the rate limit of such rows, is counted.

import { createHash } from 'node:crypto';
import type { Attempt, LedgerDelivery, Recorded } from '../recorded.ts';
import { groupBy } from './bus.ts';
import { type Violation, violation } from './violation.ts';

/** The trace of a refused request is written after its answer, and counts are written every 2 s. */
const TRACE_MS = 10_000;
const REFUSALS: ReadonlySet<number | undefined> = new Set([401, 405, 408, 413, 415]);
const KEEPS_BODY: ReadonlySet<string> = new Set(['accepted', 'conflict', 'quarantined', 'malformed']);

/** A body that is not understood may lack a usable job id. */
const MAY_LACK_JOB: ReadonlySet<string> = new Set(['quarantined', 'malformed']);

const isRefusal = ({ status, notice }: Attempt) =>
  REFUSALS.has(status) || (status === 400 && notice.kind !== 'malformed');

export function audit(recorded: Recorded): Violation[] {
  const rows = groupBy(recorded.ledger.deliveries, ({ requestId }) => String(requestId));
  const sent = new Set(recorded.attempts.map(({ requestId }) => requestId));
  const answered = recorded.attempts.filter(({ status }) => status !== undefined && status !== 503);
  return [
    ...answered
      .filter((attempt) => !isRefusal(attempt))
      .flatMap((attempt) => inRow(attempt, rows.get(attempt.requestId)?.[0])),
    ...[...rows]
      .filter(([, { length }]) => length > 1)
      .map(([requestId, { length }]) => violation('audit', `${requestId} has ${length} rows`)),
    ...contents(recorded, rows),
    ...[...rows.keys()]
      .filter((requestId) => !sent.has(requestId))
      .map((requestId) => violation('audit', `a row for ${requestId}, which nobody sent`)),
    ...recorded.ledger.deliveries
      .filter(({ outcome, hasBody }) => hasBody !== KEEPS_BODY.has(outcome))
      .map(({ requestId, outcome, hasBody }) =>
        violation('audit', `${requestId}: ${outcome} ${hasBody ? 'with' : 'without'} its body`),
      ),
    ...refusals(recorded, answered.filter(isRefusal), rows),
  ];
}

function inRow(attempt: Attempt, row: LedgerDelivery | undefined): Violation[] {
  const { requestId, status, outcome, notice } = attempt;
  const expected = notice.kind === 'malformed' ? 'malformed' : outcome;
  if (row === undefined) return [violation('audit', `${requestId} (${status} ${expected}) has no row`)];
  if (row.status === status && row.outcome === expected) return [];
  return [
    violation(
      'audit',
      `${requestId}: answered ${status} ${expected}, on record ${row.status} ${row.outcome}`,
    ),
  ];
}

/** The row of an authentic request agrees with what was sent, whatever its answer was. */
function contents(recorded: Recorded, rows: ReadonlyMap<string, readonly LedgerDelivery[]>): Violation[] {
  return recorded.attempts.flatMap((attempt) => {
    const [row] = rows.get(attempt.requestId) ?? [];
    if (row === undefined) return [];
    return wrongColumns(attempt, row).map((name) =>
      violation('audit', `${attempt.requestId} (${row.outcome}): ${name} is not that of what was sent`),
    );
  });
}

function wrongColumns({ notice, secret }: Attempt, row: LedgerDelivery): string[] {
  // Nothing that the body of an unauthentic request says is kept.
  if (row.outcome === 'unauthorized' || row.outcome === 'refused')
    return [
      ...(row.jobId === null ? [] : ['job_id']),
      ...(row.secretFingerprint === null ? [] : ['secret_fingerprint']),
    ];
  const sha256 = createHash('sha256').update(notice.body).digest('hex');
  const bytes = Buffer.byteLength(notice.body);
  const said: readonly (readonly [name: string, isRight: boolean])[] = [
    ['job_id', row.jobId === notice.jobId || (row.jobId === null && MAY_LACK_JOB.has(row.outcome))],
    ['secret_fingerprint', secret !== undefined && row.secretFingerprint === fingerprintOf(secret)],
    ['body_sha256', row.bodySha256 === sha256],
    ['body_bytes', row.bodyBytes === bytes],
    ['body', row.keptSha256 === null || (row.keptSha256 === sha256 && row.keptBytes === bytes)],
  ];
  return said.filter(([, isRight]) => !isRight).map(([name]) => name);
}

const fingerprints = new Map<string, string>();

/** Computed here and not by the code that is checked. */
function fingerprintOf(secret: string): string {
  const known = fingerprints.get(secret);
  if (known !== undefined) return known;
  const digest = createHash('sha256').update(`tallyhook secret fingerprint\0${secret}`).digest('hex');
  fingerprints.set(secret, digest.slice(0, 12));
  return digest.slice(0, 12);
}

/** The traces of requests to a replica that was killed just after may be missing, as docs/promises.md says. */
function refusals(
  recorded: Recorded,
  answered: readonly Attempt[],
  rows: ReadonlyMap<string, readonly LedgerDelivery[]>,
): Violation[] {
  const withoutRow = answered.filter(({ requestId }) => !rows.has(requestId));
  const losses = recorded.exits.map(({ replica, atMs, asked }) => {
    const episode = recorded.episodes.find(({ startMs, endMs }) => startMs <= atMs && atMs <= endMs);
    const together =
      recorded.injections.filter((injection) => injection.episode === episode?.number).length > 1;
    // On SIGTERM it writes what it has, unless another fault keeps it from the database.
    if (asked !== 'SIGKILL' && !together) return { replica, fromMs: atMs, toMs: atMs };
    return { replica, fromMs: Math.min(atMs - TRACE_MS, episode?.startMs ?? atMs), toMs: atMs };
  });
  const mayBeLost = withoutRow.filter(({ replica, endMs }) =>
    losses.some((loss) => loss.replica === replica && loss.fromMs <= endMs && endMs <= loss.toMs),
  );
  const missing = withoutRow.length - recorded.ledger.countedRefusals - mayBeLost.length;
  return missing <= 0
    ? []
    : [violation('audit', `${missing} refused requests have neither a row nor a count`)];
}
