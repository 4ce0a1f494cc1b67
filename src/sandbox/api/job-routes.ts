// Create, read and list jobs (spec 2.1 and 4).

import type { RequestHandler } from 'express';
import type { TierName, Tiers } from '../accounts/tiers.ts';
import type { Addresses } from '../addresses/addresses.ts';
import { type JobOrder, newJob } from '../jobs/job.ts';
import type { Runner } from '../jobs/runner.ts';
import type { Store } from '../store/store.ts';
import { readJson } from './bodies.ts';
import { fromCursor, toCursor } from './cursors.ts';
import { callerOf } from './gate.ts';
import {
  type Detail,
  forbidden,
  invalid,
  INVALID_CURSOR,
  NOT_FOUND,
  sendError,
  unavailable,
} from './errors.ts';
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
    const body = await readJson(request);
    if ('error' in body) return sendError(response, body.error);
    const result = validate(schema, body.value);
    if ('details' in result) return sendError(response, invalid(result.details));
    const order = result.value;
    const forbiddenFormat = findForbiddenFormat(order, tiers, account.tier);
    if (forbiddenFormat !== undefined) return sendError(response, forbidden(forbiddenFormat));
    if (!runner.hasRoom()) return sendError(response, unavailable('too many jobs are under way'));

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
    if (job === undefined) return sendError(response, NOT_FOUND);
    response.json(job);
  };
}

export function listJobsRoute({ store }: JobRoutesOptions): RequestHandler {
  return (request, response) => {
    const result = validate(jobsQuery, { ...request.query });
    if ('details' in result) return sendError(response, invalid(result.details));
    const { status, limit, cursor } = result.value;
    const before = cursor === undefined ? undefined : sequenceOf(cursor);
    if (before === null) return sendError(response, INVALID_CURSOR);

    const page = store.jobs.list({ accountId: callerOf(response).account.id, status, limit, before });
    const next = page.before === undefined ? null : toCursor('jobs', page.before);
    response.json({ jobs: page.jobs, next_cursor: next });
  };
}

/** @returns null for text that is no cursor of this list. */
function sequenceOf(cursor: string): number | null {
  const last = fromCursor('jobs', cursor);
  return last !== undefined && /^[1-9]\d{0,14}$/.test(last) ? Number(last) : null;
}

function findForbiddenFormat(order: JobOrder, tiers: Tiers, tier: TierName): Detail | undefined {
  const { formats } = tiers[tier];
  if (formats === null) return undefined;
  const field = (['input_format', 'output_format'] as const).find((name) => !formats.includes(order[name]));
  return field && { field, message: `the tier ${tier} takes ${formats.join(', ')} alone` };
}
