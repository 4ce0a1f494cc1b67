// Create, read and list jobs (service interface 2.1 and 4).

import type { RequestHandler } from 'express';
import type { TierName, Tiers } from '../accounts/tiers.ts';
import type { Addresses } from '../addresses/addresses.ts';
import { type JobOrder, newJob } from '../jobs/job.ts';
import type { Runner } from '../jobs/runner.ts';
import type { Store } from '../store/store.ts';
import { readJson } from './bodies.ts';
import { fromCursor, toCursor } from './cursors.ts';
import { callerOf } from './gate.ts';
import { ApiError, forbidden, INVALID_CURSOR, NOT_FOUND, unavailable } from './errors.ts';
import { jobsQuery, orderSchema, validate } from './schemas.ts';

export const JOBS_PATH = '/v1/conversion_jobs';

export type JobRoutesOptions = {
  readonly store: Pick<Store, 'transaction' | 'jobs'>;
  readonly runner: Pick<Runner, 'hasRoom' | 'add'>;
  readonly addresses: Pick<Addresses, 'fault'>;
  readonly tiers: Tiers;
  /** Older jobs that have ended are deleted. */
  readonly keptJobs: number;
  readonly now: () => number;
};

export function createJobRoute(options: JobRoutesOptions): RequestHandler {
  const { store, runner, tiers, keptJobs, now } = options;
  const { transaction, jobs } = store;
  const schema = orderSchema(options.addresses);

  return async (request, response) => {
    const { account } = callerOf(response);
    const order = validate(schema, await readJson(request));
    checkFormats(order, tiers, account.tier);
    if (!runner.hasRoom()) throw new ApiError(unavailable('too many jobs are under way'));

    const job = newJob(order, new Date(now()).toISOString());
    transaction(() => {
      jobs.add(job, account.id);
      jobs.prune(keptJobs);
    });
    runner.add({ job, accountId: account.id });
    response.location(`${JOBS_PATH}/${job.job_id}`).status(201).json(job);
  };
}

export function readJobRoute({ store }: JobRoutesOptions): RequestHandler<{ job_id: string }> {
  return (request, response) => {
    // A job of another account gets the same answer as a missing one.
    const job = store.jobs.find(request.params.job_id, callerOf(response).account.id);
    if (job === undefined) throw new ApiError(NOT_FOUND);
    response.json(job);
  };
}

export function listJobsRoute({ store }: JobRoutesOptions): RequestHandler {
  return (request, response) => {
    const { status, limit, cursor } = validate(jobsQuery, { ...request.query });
    const before = cursor === undefined ? undefined : sequenceOf(cursor);
    const page = store.jobs.list({ accountId: callerOf(response).account.id, status, limit, before });
    const next = page.before === undefined ? null : toCursor('jobs', page.before);
    response.json({ jobs: page.jobs, next_cursor: next });
  };
}

function sequenceOf(cursor: string): number {
  const last = fromCursor('jobs', cursor) ?? '';
  if (!/^[1-9]\d{0,14}$/.test(last)) throw new ApiError(INVALID_CURSOR);
  return Number(last);
}

/** @throws ApiError for a format that the tier does not have. */
function checkFormats(order: JobOrder, tiers: Tiers, tier: TierName): void {
  const { formats } = tiers[tier];
  if (formats === null) return;
  const field = (['input_format', 'output_format'] as const).find((name) => !formats.includes(order[name]));
  if (field === undefined) return;
  throw new ApiError(forbidden({ field, message: `the tier ${tier} takes ${formats.join(', ')} alone` }));
}
