// A client of the conversion service's API, as its interface documents it; the sandbox is one such service. Answers
// are checked, errors are typed (errors.ts), limits are respected (transport.ts), and the token is never shown.

import { pages } from '../base/net/all-pages.ts';
import {
  type Account,
  accountSchema,
  type Job,
  type JobPage,
  jobPageSchema,
  jobSchema,
  type JobStatus,
} from './schemas.ts';
import { createTransport, type TransportOptions } from './transport.ts';

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

/** The creation fields of service interface 2.1. The addresses are HTTPS. */
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

export type ClientOptions = TransportOptions;

/** Aborting rejects with the signal's reason, also while it waits for a limit. */
export type CallOptions = { readonly signal?: AbortSignal };

export type Client = {
  /** Not idempotent: after a `NoAnswerError` look for the job before you create it again. */
  readonly createJob: (job: NewJob, options?: CallOptions) => Promise<Job>;
  /** @throws NotFoundError for a job that does not exist or belongs to another account. */
  readonly getJob: (jobId: string, options?: CallOptions) => Promise<Job>;
  /** One page, the newest jobs first; `next_cursor` is null on the last one. */
  readonly listJobs: (
    filter?: JobFilter & { readonly cursor?: string | undefined },
    options?: CallOptions,
  ) => Promise<JobPage>;
  /** All jobs, page by page as they are asked for. */
  readonly eachJob: (filter?: JobFilter, options?: CallOptions) => AsyncGenerator<Job, void, undefined>;
  /** The account behind the token. */
  readonly me: (options?: CallOptions) => Promise<Account>;
};

export function createClient(options: ClientOptions): Client {
  const { json } = createTransport(options);

  const listJobs: Client['listJobs'] = (filter, { signal } = {}) =>
    json({ method: 'GET', path: '/conversion_jobs', query: filter, signal }, jobPageSchema);

  async function* eachJob(
    filter?: JobFilter,
    callOptions?: CallOptions,
  ): AsyncGenerator<Job, void, undefined> {
    for await (const { jobs } of pages((cursor) => listJobs({ ...filter, cursor }, callOptions))) yield* jobs;
  }

  return {
    createJob: (job, { signal } = {}) =>
      json({ method: 'POST', path: '/conversion_jobs', body: job, signal }, jobSchema),
    getJob: (jobId, { signal } = {}) =>
      json({ method: 'GET', path: `/conversion_jobs/${encodeURIComponent(jobId)}`, signal }, jobSchema),
    listJobs,
    eachJob,
    me: ({ signal } = {}) => json({ method: 'GET', path: '/me', signal }, accountSchema),
  };
}
