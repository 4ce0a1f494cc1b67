// Every complete request has left its trace in the ledger: those that were authentic a row of their own with what they
// were answered; those that were refused a row or, past the rate, a count.

import { createHash } from 'node:crypto';
import type { Attempt, LedgerDelivery, Recorded } from '../recorded.ts';
import { groupBy } from './bus.ts';
import { type Violation, violation } from './violation.ts';

/** Written after the answer, since it must not tell by its time which sources exist; counts each 2 s. */
const TRACE_MS = 10_000;
const REFUSALS: ReadonlySet<number | undefined> = new Set([401, 405, 408, 413, 415]);
const KEEPS_BODY: ReadonlySet<string> = new Set(['accepted', 'conflict', 'quarantined', 'malformed']);

/** What could not be understood may not even have told which job it is of. */
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

/** What a row says of an authentic request, whatever became of its answer, is what was sent. */
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
  // Of what was not authentic nothing is kept that its body says.
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

/** As docs/architecture.md has it, computed anew. */
function fingerprintOf(secret: string): string {
  const known = fingerprints.get(secret);
  if (known !== undefined) return known;
  const digest = createHash('sha256').update(`tallyhook secret fingerprint\0${secret}`).digest('hex');
  fingerprints.set(secret, digest.slice(0, 12));
  return digest.slice(0, 12);
}

/** Those of a replica that ended without warning just after may be missing, as the README says. */
function refusals(
  recorded: Recorded,
  answered: readonly Attempt[],
  rows: ReadonlyMap<string, readonly LedgerDelivery[]>,
): Violation[] {
  const withoutRow = answered.filter(({ requestId }) => !rows.has(requestId));
  const losses = recorded.exits.map(({ replica, atMs, asked }) => {
    const episode = recorded.episodes.find(({ startMs, endMs }) => startMs <= atMs && atMs <= endMs);
    const together = recorded.wounds.filter((wound) => wound.episode === episode?.number).length > 1;
    // Asked to end in order, it writes what it has, unless the database is away as well.
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
