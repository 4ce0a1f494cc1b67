// The list of jobs.

import { apiList, scoped } from '../kernel/list/list.operations.ts';
import { ApiError } from '../kernel/operation/operation.ts';
import { jobs } from './queries.ts';

export const jobsList = apiList('jobs', jobs, (asked, caller) => {
  if (asked.stuck_after !== undefined && asked.state !== 'stuck') {
    throw new ApiError(400, 'invalid_request', 'stuck_after: only together with state=stuck');
  }
  return scoped(asked, caller);
});
