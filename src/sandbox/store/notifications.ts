// Notices to be sent and what came of each, as rows: the deliverer's memory, which outlives a restart.

import type { Attempt, EventKind, Notice, NoticeState, NoticeStore } from '../webhooks/deliverer.ts';
import type { Database } from './database.ts';

/** Redeliveries have no end of their own: of one notice's attempts so many are remembered. */
const ATTEMPTS_KEPT = 100;

type NoticeRow = {
  readonly id: string;
  readonly account_id: string;
  readonly job_id: string;
  readonly kind: EventKind;
  readonly url: string;
  readonly body: Uint8Array;
  readonly created_at: string;
  readonly state: NoticeState;
  readonly attempts: number;
};

type AttemptRow = {
  readonly notice_id: string;
  readonly attempt: number;
  readonly started_at: string;
  readonly duration_ms: number;
  readonly http_status: number | null;
  readonly error: string | null;
};

// By notices_by_job: a notice waits for earlier ones of its job that nobody has tried yet.
const ELIGIBLE = `state = 'pending' and due_at_ms is not null and not exists (
  select 1 from notices earlier where earlier.job_id = notices.job_id and earlier.sequence < notices.sequence
    and earlier.state = 'pending' and earlier.attempts = 0)`;

export function createNoticeStore(database: Database): NoticeStore {
  const { prepare, transaction } = database;
  const insert = prepare(
    `insert into notices (id, account_id, job_id, kind, url, body, created_at, state, due_at_ms)
     values (:id, :accountId, :jobId, :kind, :url, :body, :createdAt, 'pending', :dueAtMs)`,
  );
  // By notices_due, which holds pending ones alone.
  const due = prepare(
    `select * from notices where due_at_ms <= :nowMs and ${ELIGIBLE} order by due_at_ms, sequence limit :limit`,
  );
  const nextDue = prepare(
    `select due_at_ms from notices where ${ELIGIBLE} order by due_at_ms, sequence limit 1`,
  );
  const select = prepare('select * from notices where id = ?');
  const page = prepare(
    `select * from notices where account_id = :accountId and (:jobId is null or job_id = :jobId)
       and (:before is null or sequence < (select sequence from notices where id = :before))
     order by sequence desc limit :limit`,
  );
  const insertAttempt = prepare(
    `insert or replace into attempts (notice_id, attempt, started_at, duration_ms, http_status, error)
     values (:noticeId, :attempt, :startedAt, :durationMs, :httpStatus, :error)`,
  );
  const dropAttempts = prepare(
    `delete from attempts where notice_id = ? and attempt <= ? - ${ATTEMPTS_KEPT}`,
  );
  const update = prepare(
    'update notices set attempts = max(attempts, :count), state = :state, due_at_ms = :dueAtMs where id = :id',
  );
  const attemptsOf = prepare('select * from attempts where notice_id = ? order by attempt');

  const withAttempts = (row: unknown) => {
    const { notice, state } = toNotice(row);
    const attempts = attemptsOf.all(notice.id).map((attempt) => toAttempt(attempt));
    return { notice, state, attempts };
  };

  return {
    add: ({ id, accountId, jobId, kind, url, body, createdAt }, dueAtMs) =>
      void insert.run({ id, accountId, jobId, kind, url, body, createdAt, dueAtMs }),
    due: (nowMs, limit) =>
      due.all({ nowMs, limit }).map((row) => {
        const { notice, attempts } = toNotice(row);
        return { notice, attempts };
      }),
    nextDueMs: () => nextDue.get()?.['due_at_ms'] as number | undefined,
    record: ({ noticeId, attempt, startedAt, durationMs, httpStatus, error }, { state, dueAtMs }) =>
      transaction(() => {
        const { changes } = update.run({ id: noticeId, count: attempt, state, dueAtMs });
        if (changes === 0) return; // dropped with its job while the attempt was under way
        insertAttempt.run({ noticeId, attempt, startedAt, durationMs, httpStatus, error });
        dropAttempts.run(noticeId, attempt);
      }),
    find: (noticeId) => {
      const row = select.get(noticeId);
      return row === undefined ? undefined : withAttempts(row);
    },
    list: ({ accountId, jobId, limit, before }) =>
      page
        .all({ accountId, jobId: jobId ?? null, before: before ?? null, limit })
        .map((row) => withAttempts(row)),
  };
}

function toNotice(row: unknown): { notice: Notice; state: NoticeState; attempts: number } {
  const { id, account_id, job_id, kind, url, body, created_at, state, attempts } = row as NoticeRow;
  return {
    notice: {
      id,
      accountId: account_id,
      jobId: job_id,
      kind,
      url,
      body: Buffer.from(body.buffer, body.byteOffset, body.byteLength),
      createdAt: created_at,
    },
    state,
    attempts,
  };
}

function toAttempt(row: unknown): Attempt {
  const { notice_id, attempt, started_at, duration_ms, http_status, error } = row as AttemptRow;
  return {
    noticeId: notice_id,
    attempt,
    startedAt: started_at,
    durationMs: duration_ms,
    httpStatus: http_status,
    error,
  };
}
