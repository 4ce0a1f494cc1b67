// The ledger with which a run begins: as the program before migration 0010 left it, with events that it had acknowledged and not
// published, some of which were returned, parked or had failed. The replicas of the run migrate it.

import { createHash, randomUUID } from 'node:crypto';
import { migrate } from '../../src/ledger/migrate.ts';
import { migrations } from '../support/migrations.ts';
import { columnsBefore, RECORD_BEFORE } from '../support/old-outbox.ts';
import { eventRecord } from '../support/records.ts';
import { drawJob, type Notice } from './notices.ts';
import type { Random } from './random.ts';
import type { Attempt } from './recorded.ts';
import type { World } from './world.ts';

const JOBS = 60;
/** The last migration that the program before knows. */
const PROGRAM_BEFORE = '0008-replicas';
/** Its leader was here a moment ago: the migration waits until its lease has expired. */
const LEASE = `insert into relay_lease values ('relay', gen_random_uuid(), 1, now() + interval '2 s')`;
const PARTITIONS = `select make_partition(parent, (now() at time zone 'UTC')::date + n)
from unnest(array['deliveries', 'publications']) as parent, generate_series(0, 1) as n`;
/** By turns, what became of the first event of a job. */
const STATES = [
  { state: 'pending', attempts: 0 },
  { state: 'pending', attempts: 3 },
  { state: 'returned', attempts: 1 },
  { state: 'parked', attempts: 20 },
] as const;
const SETTLE = `update outbox set state = $2, attempts = $3, last_error = 'a test' where attempts = 0
and sequence = any(select min(sequence) from outbox where job_id = any($1) group by source, job_id)`;
/** In the first episode, in which an event may be returned. */
const RETURNED = `
insert into publications (published_at, event_sequence, attempt, result, detail, duration_ms, relay_id, source)
select now() + interval '1 s', sequence, 1, 'returned', 'a test', 1, gen_random_uuid(), source from outbox where state = 'returned'`;

/** @returns the requests that made these events, as their senders saw them */
export async function fillOldLedger(
  { postgres, query, sources }: World,
  random: Random,
): Promise<readonly Attempt[]> {
  const known = Object.fromEntries(Object.entries(migrations).filter(([name]) => name <= PROGRAM_BEFORE));
  await migrate(postgres.url, undefined, { getMigrations: () => Promise.resolve(known) });
  await query(PARTITIONS);
  await query(LEASE);
  const jobs = Array.from({ length: JOBS }, (_, job) =>
    firstNotices(drawJob(random.fork(`job ${job}`), `old${job}`)),
  );
  const attempts: Attempt[] = [];
  for (let place = 0; jobs.some((notices) => notices.length > place); place++) {
    // One statement has one event of a job.
    const wave = jobs.flatMap((notices) => notices[place] ?? []).map((notice) => toAttempt(notice, sources));
    await query(RECORD_BEFORE, columnsBefore(wave.map(toRecord)));
    for (const each of wave) attempts.push({ ...each, endMs: performance.now() });
  }
  for (const [turn, { state, attempts: tried }] of STATES.entries()) {
    const chosen = jobs.filter((_, job) => job % STATES.length === turn);
    await query(SETTLE, [chosen.flatMap(([first]) => first?.jobId ?? []), state, tried]);
  }
  await query(RETURNED);
  return attempts;
}

/** One for each event. */
function firstNotices(notices: readonly Notice[]): Notice[] {
  const added = notices.filter(({ kind }) => kind === 'new');
  return added.filter(
    ({ eventId }, index) => added.findIndex((other) => other.eventId === eventId) === index,
  );
}

function toAttempt(notice: Notice, sources: World['sources']): Attempt {
  return {
    requestId: randomUUID(),
    notice,
    replica: 0,
    secret: sources.secretOf(notice.source),
    startMs: performance.now(),
    endMs: Number.NaN,
    status: 202,
    error: undefined,
    outcome: 'accepted',
    eventId: notice.eventId,
    retryAfter: undefined,
    lateAnswerMs: undefined,
  };
}

const toRecord = ({ requestId, notice, secret }: Attempt) => ({
  ...eventRecord(notice.body, { source: notice.source }),
  headers: JSON.stringify({ 'x-request-id': requestId }),
  secretFingerprint: createHash('sha256')
    .update(`tallyhook secret fingerprint\0${secret}`)
    .digest('hex')
    .slice(0, 12),
});
