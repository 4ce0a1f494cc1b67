// Jobs as rows. Every change names the state that it expects: a job that has ended stays as it is, whatever comes late.

import type { Job, JobStatus } from '../jobs/job.ts';
import type { Database } from './database.ts';

export type OwnedJob = { readonly job: Job; readonly accountId: string };

export type JobPage = {
  readonly jobs: readonly Job[];
  /** Where the next page begins; undefined on the last one. */
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
  /** Counts a start. @returns how many there were without a `giveBack` */
  readonly begin: (jobId: string) => number;
  /** It was interrupted through no fault of its own: the start does not count. */
  readonly giveBack: (jobId: string) => void;
  /** Each gives the job as it is now, or undefined if it had ended already. Progress never falls. */
  readonly progress: (jobId: string, percentage: number, estimatedCompletion: string) => OwnedJob | undefined;
  readonly complete: (jobId: string, result: JobResult) => OwnedJob | undefined;
  readonly fail: (jobId: string, fault: JobFault) => OwnedJob | undefined;
  /** Drops ended jobs, with their notices, except the last `keep` jobs. */
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
type ListedRow = Job & { readonly sequence: number };

export function createJobStore(database: Database): JobStore {
  const { prepare, transaction } = database;
  const insert = prepare(
    `insert into jobs (account_id, ${SHOWN}) values (:account_id, ${COLUMNS.map((name) => `:${name}`).join(', ')})`,
  );
  const select = prepare(`select ${SHOWN} from jobs where job_id = ? and account_id = ?`);
  // By jobs_by_account or jobs_by_status: both end in the sequence, so a page reads no more rows than it shows.
  const page = (condition: string) =>
    prepare(
      `select sequence, ${SHOWN} from jobs where account_id = :accountId ${condition} and sequence < :before
       order by sequence desc limit :limit`,
    );
  const pages = { all: page(''), ofStatus: page('and status = :status') };
  const unended = prepare(
    `select account_id, ${SHOWN} from jobs where status = 'processing' order by sequence`,
  );
  const begin = prepare('update jobs set starts = starts + 1 where job_id = ? returning starts');
  const giveBack = prepare('update jobs set starts = starts - 1 where job_id = ? and starts > 0');
  const progress = prepare(
    `update jobs set progress_percentage = max(progress_percentage, :percentage), estimated_completion = :estimate
     where job_id = :jobId and status = 'processing' ${RETURNING}`,
  );
  const complete = prepare(
    `update jobs set status = 'completed', progress_percentage = 100, estimated_completion = null,
       completed_at = :completed_at, cost_micros = :cost_micros, cost_cents = :cost_cents,
       processing_time_seconds = :processing_time_seconds, output_size_bytes = :output_size_bytes
     where job_id = :jobId and status = 'processing' ${RETURNING}`,
  );
  const fail = prepare(
    `update jobs set status = 'failed', estimated_completion = null, failed_at = :failed_at,
       error_code = :error_code, error_message = :error_message
     where job_id = :jobId and status = 'processing' ${RETURNING}`,
  );
  const OLD = `from jobs where status <> 'processing' and sequence <= (select max(sequence) from jobs) - ?`;
  const pruneNotices = prepare(`delete from notices where job_id in (select job_id ${OLD})`);
  const pruneJobs = prepare(`delete ${OLD}`);

  return {
    add: (job, accountId) => void insert.run({ account_id: accountId, ...job }),
    find: (jobId, accountId) => select.get(jobId, accountId) as Job | undefined,
    list: ({ accountId, status, limit, before = Number.MAX_SAFE_INTEGER }) => {
      const range = { accountId, before, limit: limit + 1 }; // one more tells whether there is a next page
      const rows = status === undefined ? pages.all.all(range) : pages.ofStatus.all({ ...range, status });
      const listed = rows.slice(0, limit) as unknown as ListedRow[];
      return {
        jobs: listed.map(({ sequence: _sequence, ...job }) => job),
        before: rows.length > limit ? listed.at(-1)?.sequence : undefined,
      };
    },
    underWay: () => unended.all().map((row) => owned(row) as OwnedJob),
    begin: (jobId) => Number(begin.get(jobId)?.['starts'] ?? 0),
    giveBack: (jobId) => void giveBack.run(jobId),
    progress: (jobId, percentage, estimate) => owned(progress.get({ jobId, percentage, estimate })),
    complete: (jobId, result) => owned(complete.get({ jobId, ...result })),
    fail: (jobId, fault) => owned(fail.get({ jobId, ...fault })),
    prune: (keep) =>
      transaction(() => {
        pruneNotices.run(keep);
        pruneJobs.run(keep);
      }),
  };
}

function owned(row: unknown): OwnedJob | undefined {
  if (row === undefined) return undefined;
  const { account_id: accountId, ...job } = row as OwnedRow;
  return { job, accountId };
}
