// Notifications and their attempts in the database, so that they survive a restart. The tables call them `notices`.

import type {
  Attempt,
  Notification,
  NotificationState,
  NotificationStore,
} from '../webhooks/notifications.ts';
import type { Database } from './database.ts';

/** Per notification. Redeliveries are unlimited, so only the latest attempts are kept. */
const ATTEMPTS_KEPT = 100;

type Row = Omit<Notification, 'body'> & {
  readonly body: Uint8Array;
  readonly state: NotificationState;
  readonly attempts: number;
};
const NOTIFICATION = `id, account_id as accountId, job_id as jobId, kind, url, body, created_at as createdAt, state, attempts`;
const ATTEMPT = `notice_id as notificationId, attempt, started_at as startedAt, duration_ms as durationMs,
  http_status as httpStatus, error`;

// A notification waits for earlier ones of its job that have had no attempt yet. Uses the index notices_by_job.
const ELIGIBLE = `state = 'pending' and due_at_ms is not null and not exists (
  select 1 from notices earlier where earlier.job_id = notices.job_id and earlier.sequence < notices.sequence
    and earlier.state = 'pending' and earlier.attempts = 0)`;

export function createNotificationStore({ prepare, transaction }: Database): NotificationStore {
  const insert = prepare(
    `insert into notices (id, account_id, job_id, kind, url, body, created_at, state, due_at_ms)
     values (:id, :accountId, :jobId, :kind, :url, :body, :createdAt, 'pending', :dueAtMs)`,
  );
  // The index notices_due contains only pending ones, in this order.
  const due = prepare<Row>(
    `select ${NOTIFICATION} from notices where due_at_ms <= :nowMs and ${ELIGIBLE}
     order by due_at_ms, sequence limit :limit`,
  );
  const nextDue = prepare<{ dueAtMs: number }>(
    `select due_at_ms as dueAtMs from notices where ${ELIGIBLE} order by due_at_ms, sequence limit 1`,
  );
  const select = prepare<Row>(`select ${NOTIFICATION} from notices where id = ?`);
  const page = prepare<Row>(
    `select ${NOTIFICATION} from notices where account_id = :accountId and (:jobId is null or job_id = :jobId)
       and (:before is null or sequence < (select sequence from notices where id = :before))
     order by sequence desc limit :limit`,
  );
  const insertAttempt = prepare(
    `insert or replace into attempts (notice_id, attempt, started_at, duration_ms, http_status, error)
     values (:notificationId, :attempt, :startedAt, :durationMs, :httpStatus, :error)`,
  );
  const dropAttempts = prepare(
    `delete from attempts where notice_id = ? and attempt <= ? - ${ATTEMPTS_KEPT}`,
  );
  const update = prepare(
    'update notices set attempts = max(attempts, :count), state = :state, due_at_ms = :dueAtMs where id = :id',
  );
  const attemptsOf = prepare<Attempt>(`select ${ATTEMPT} from attempts where notice_id = ? order by attempt`);

  const toRecord = (row: Row) => ({ ...fromRow(row), attempts: attemptsOf.all(row.id) });

  return {
    add: ({ id, accountId, jobId, kind, url, body, createdAt }, dueAtMs) =>
      void insert.run({ id, accountId, jobId, kind, url, body, createdAt, dueAtMs }),
    due: (nowMs, limit) => due.all({ nowMs, limit }).map(fromRow),
    nextDueMs: () => nextDue.get()?.dueAtMs,
    record: ({ notificationId, attempt, startedAt, durationMs, httpStatus, error }, { state, dueAtMs }) =>
      transaction(() => {
        const { changes } = update.run({ id: notificationId, count: attempt, state, dueAtMs });
        if (changes === 0) return; // it was deleted with its job during the attempt
        insertAttempt.run({ notificationId, attempt, startedAt, durationMs, httpStatus, error });
        dropAttempts.run(notificationId, attempt);
      }),
    find: (id) => {
      const row = select.get(id);
      return row && toRecord(row);
    },
    list: ({ accountId, jobId = null, limit, before = null }) =>
      page.all({ accountId, jobId, before, limit }).map(toRecord),
  };
}

function fromRow({ state, attempts, body, ...rest }: Row) {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  return { notification: { ...rest, body: bytes }, state, attempts };
}
