// Create, read and list jobs (service interface 2.1 and 4).

import type { RequestHandler } from 'express';
import { readJson } from './bodies.ts';
import { type CreateJobOptions, createJobCreation } from './create-job.ts';
import { fromCursor, toCursor } from './cursors.ts';
import { callerOf } from './gate.ts';
import { ApiError, INVALID_CURSOR, NOT_FOUND } from './errors.ts';
import { jobsQuery, validate } from './schemas.ts';

export const JOBS_PATH = '/v1/conversion_jobs';

export type JobRoutesOptions = CreateJobOptions;

export function createJobRoute(options: JobRoutesOptions): RequestHandler {
  const create = createJobCreation(options);

  return async (request, response) => {
    const job = create(await readJson(request), callerOf(response).account);
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
    const before = cursor === undefined ? undefined : jobSequenceOf(cursor);
    const page = store.jobs.list({ accountId: callerOf(response).account.id, status, limit, before });
    const next = page.before === undefined ? null : toCursor('jobs', page.before);
    response.json({ jobs: page.jobs, next_cursor: next });
  };
}

/** @throws ApiError for text that is no cursor of ours */
export function jobSequenceOf(cursor: string): number {
  const last = fromCursor('jobs', cursor) ?? '';
  if (!/^[1-9]\d{0,14}$/.test(last)) throw new ApiError(INVALID_CURSOR);
  return Number(last);
}
