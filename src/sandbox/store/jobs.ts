// Jobs in the database. Each update expects the status `processing`, so a job that has ended never changes again.

import type { Job, JobStatus } from '../jobs/job.ts';
import type { Database } from './database.ts';

export type OwnedJob = { readonly job: Job; readonly accountId: string };

export type JobPage = {
  readonly jobs: readonly Job[];
  /** Where the next page starts; undefined on the last page. */
  readonly before: number | undefined;
};

export type JobResult = Pick<
  Job,
  'completed_at' | 'cost_micros' | 'cost_cents' | 'processing_time_seconds' | 'output_size_bytes'
>;
export type JobFault = Pick<Job, 'failed_at' | 'error_code' | 'error_message'>;

export type JobStore = {
  readonly add: (job: Job, accountId: string) => void;
  readonly find: (jobId: string, accountId: string) => Job | undefined;
  /** Newest first. */
  readonly list: (filter: {
    accountId: string;
    status: JobStatus | undefined;
    limit: number;
    before: number | undefined;
  }) => JobPage;
  /** All that have not ended, oldest first. */
  readonly underWay: () => readonly OwnedJob[];
  /** Counts a start of the conversion. @returns the number of starts that were not undone */
  readonly countStart: (jobId: string) => number;
  /** For a conversion that was cancelled by a shutdown. */
  readonly undoStart: (jobId: string) => void;
  // These three return the updated job, or undefined if it had ended before. Progress never decreases.
  readonly progress: (jobId: string, percentage: number, estimatedCompletion: string) => OwnedJob | undefined;
  readonly complete: (jobId: string, result: JobResult) => OwnedJob | undefined;
  readonly fail: (jobId: string, fault: JobFault) => OwnedJob | undefined;
  /** Deletes ended jobs, with their notifications, except the last `keep` jobs. */
  readonly prune: (keep: number) => void;
};

const COLUMNS = [
  'job_id',
  'status',
  'job_type',
  'input_url',
  'output_url',
  'input_format',
  'output_format',
  'webhook_url',
  'progress_percentage',
  'created_at',
  'estimated_completion',
  'completed_at',
  'failed_at',
  'error_code',
  'error_message',
  'cost_micros',
  'cost_cents',
  'processing_time_seconds',
  'output_size_bytes',
] as const satisfies readonly (keyof Job)[];
const SHOWN = COLUMNS.join(', ');
const RETURNING = `returning account_id, ${SHOWN}`;

type OwnedRow = Job & { readonly account_id: string };

export function createJobStore({ prepare, transaction }: Database): JobStore {
  const insert = prepare(
    `insert into jobs (account_id, ${SHOWN}) values (:account_id, ${COLUMNS.map((name) => `:${name}`).join(', ')})`,
  );
  const select = prepare<Job>(`select ${SHOWN} from jobs where job_id = ? and account_id = ?`);
  // The indexes jobs_by_account and jobs_by_status end in the sequence, so a page reads no more rows than it returns.
  const page = (condition: string) =>
    prepare<Job & { sequence: number }>(
      `select sequence, ${SHOWN} from jobs where account_id = :accountId ${condition} and sequence < :before
       order by sequence desc limit :limit`,
    );
  const pages = { all: page(''), ofStatus: page('and status = :status') };
  const unended = prepare<OwnedRow>(
    `select account_id, ${SHOWN} from jobs where status = 'processing' order by sequence`,
  );
  const countStart = prepare<{ starts: number }>(
    'update jobs set starts = starts + 1 where job_id = ? returning starts',
  );
  const undoStart = prepare('update jobs set starts = starts - 1 where job_id = ? and starts > 0');
  const progress = prepare<OwnedRow>(
    `update jobs set progress_percentage = max(progress_percentage, :percentage), estimated_completion = :estimate
     where job_id = :jobId and status = 'processing' ${RETURNING}`,
  );
  const complete = prepare<OwnedRow>(
    `update jobs set status = 'completed', progress_percentage = 100, estimated_completion = null,
       completed_at = :completed_at, cost_micros = :cost_micros, cost_cents = :cost_cents,
       processing_time_seconds = :processing_time_seconds, output_size_bytes = :output_size_bytes
     where job_id = :jobId and status = 'processing' ${RETURNING}`,
  );
  const fail = prepare<OwnedRow>(
    `update jobs set status = 'failed', estimated_completion = null, failed_at = :failed_at,
       error_code = :error_code, error_message = :error_message
     where job_id = :jobId and status = 'processing' ${RETURNING}`,
  );
  const OLD = `from jobs where status <> 'processing' and sequence <= (select max(sequence) from jobs) - ?`;
  const pruneNotifications = prepare(`delete from notices where job_id in (select job_id ${OLD})`);
  const pruneJobs = prepare(`delete ${OLD}`);

  return {
    add: (job, accountId) => void insert.run({ account_id: accountId, ...job }),
    find: (jobId, accountId) => select.get(jobId, accountId),
    list: ({ accountId, status, limit, before = Number.MAX_SAFE_INTEGER }) => {
      const range = { accountId, before, limit: limit + 1 }; // one more shows whether there is a next page
      const rows = status === undefined ? pages.all.all(range) : pages.ofStatus.all({ ...range, status });
      const listed = rows.slice(0, limit);
      return {
        jobs: listed.map(({ sequence: _sequence, ...job }) => job),
        before: rows.length > limit ? listed.at(-1)?.sequence : undefined,
      };
    },
    underWay: () => unended.all().map(toOwned),
    countStart: (jobId) => countStart.get(jobId)?.starts ?? 0,
    undoStart: (jobId) => void undoStart.run(jobId),
    progress: (jobId, percentage, estimate) => ownedOrNone(progress.get({ jobId, percentage, estimate })),
    complete: (jobId, result) => ownedOrNone(complete.get({ jobId, ...result })),
    fail: (jobId, fault) => ownedOrNone(fail.get({ jobId, ...fault })),
    prune: (keep) =>
      transaction(() => {
        pruneNotifications.run(keep);
        pruneJobs.run(keep);
      }),
  };
}

function toOwned({ account_id: accountId, ...job }: OwnedRow): OwnedJob {
  return { job, accountId };
}

function ownedOrNone(row: OwnedRow | undefined): OwnedJob | undefined {
  return row && toOwned(row);
}
