// A client of the conversion service's API, as its interface documents it; the sandbox is one such service. Answers
// are checked, errors are typed (errors.ts), limits are honoured (transport.ts), and the token is never shown.

import { createExchange, type ExchangeOptions } from './transport.ts';
import { InvalidAnswerError } from './errors.ts';
import {
  type Account,
  accountSchema,
  type Job,
  type JobPage,
  jobPageSchema,
  jobSchema,
  type JobStatus,
} from './schemas.ts';

export {
  ForbiddenError,
  InvalidAnswerError,
  InvalidRequestError,
  NoAnswerError,
  NotFoundError,
  RateLimitedError,
  ServiceError,
  UnauthorizedError,
} from './errors.ts';
export type { FieldFault, RateLimit } from './errors.ts';
export type { Account, Job, JobPage, JobStatus } from './schemas.ts';

/** The creation fields of spec 2.1. The addresses are HTTPS. */
export type NewJob = {
  readonly job_type: 'video';
  readonly input_url: string;
  readonly output_url: string;
  readonly input_format: string;
  readonly output_format: string;
  readonly webhook_url?: string;
};

export type JobFilter = {
  readonly status?: JobStatus;
  /** Jobs a page, 1 to 100. */
  readonly limit?: number;
};

export type ClientOptions = ExchangeOptions;

/** Aborting rejects with the signal's reason, also while a limit is waited out. */
export type CallOptions = { readonly signal?: AbortSignal };

export type Client = {
  /** Not idempotent: after a `NoAnswerError` look for the job before you create it again. */
  readonly createJob: (job: NewJob, options?: CallOptions) => Promise<Job>;
  /** @throws NotFoundError for a job that does not exist or belongs to another account. */
  readonly getJob: (jobId: string, options?: CallOptions) => Promise<Job>;
  /** One page, the newest jobs first; `next_cursor` is null on the last one. */
  readonly listJobs: (
    filter?: JobFilter & { readonly cursor?: string },
    options?: CallOptions,
  ) => Promise<JobPage>;
  /** All jobs, page by page as they are asked for. */
  readonly eachJob: (filter?: JobFilter, options?: CallOptions) => AsyncGenerator<Job, void, undefined>;
  /** The account behind the token. */
  readonly me: (options?: CallOptions) => Promise<Account>;
};

export function createClient(options: ClientOptions): Client {
  const exchange = createExchange(options);

  const listJobs: Client['listJobs'] = (filter = {}, { signal } = {}) =>
    exchange({ method: 'GET', path: `/conversion_jobs${toQuery(filter)}`, signal }, jobPageSchema);

  async function* eachJob(
    filter: JobFilter = {},
    callOptions: CallOptions = {},
  ): AsyncGenerator<Job, void, undefined> {
    let cursor: string | undefined;
    for (;;) {
      const page = await listJobs(cursor === undefined ? filter : { ...filter, cursor }, callOptions);
      yield* page.jobs;
      if (page.next_cursor === null) return;
      // A list that leads back to itself would never end.
      if (page.next_cursor === cursor) throw new InvalidAnswerError('the list of jobs does not go on');
      cursor = page.next_cursor;
    }
  }

  return {
    createJob: (job, { signal } = {}) =>
      exchange({ method: 'POST', path: '/conversion_jobs', body: job, signal }, jobSchema),
    getJob: (jobId, { signal } = {}) =>
      exchange({ method: 'GET', path: `/conversion_jobs/${encodeURIComponent(jobId)}`, signal }, jobSchema),
    listJobs,
    eachJob,
    me: ({ signal } = {}) => exchange({ method: 'GET', path: '/me', signal }, accountSchema),
  };
}

function toQuery(filter: Readonly<Record<string, string | number | undefined>>): string {
  const given = Object.entries(filter).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, String(value)]],
  );
  return given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`;
}
