// Creates a job for an account: for the API and for the dashboard's form.

import type { TierName, Tiers } from '../accounts/tiers.ts';
import type { Addresses } from '../addresses/addresses.ts';
import { type Job, type JobOrder, newJob } from '../jobs/job.ts';
import type { Runner } from '../jobs/runner.ts';
import type { Account } from '../store/accounts.ts';
import type { Store } from '../store/store.ts';
import { ApiError, forbidden, unavailable } from './errors.ts';
import { orderSchema, validate } from './schemas.ts';

export type CreateJobOptions = {
  readonly store: Pick<Store, 'transaction' | 'jobs'>;
  readonly runner: Pick<Runner, 'hasRoom' | 'add'>;
  readonly addresses: Pick<Addresses, 'fault'>;
  readonly tiers: Tiers;
  /** Older jobs that have ended are deleted. */
  readonly keptJobs: number;
  readonly now: () => number;
};

/** @returns a function that throws ApiError for an `order` that is not valid, not allowed, or has no room */
export function createJobCreation(options: CreateJobOptions): (order: unknown, account: Account) => Job {
  const { store, runner, tiers, keptJobs, now } = options;
  const { transaction, jobs } = store;
  const schema = orderSchema(options.addresses);

  return (given, account) => {
    const order = validate(schema, given);
    checkFormats(order, tiers, account.tier);
    if (!runner.hasRoom()) throw new ApiError(unavailable('too many jobs are under way'));

    const job = newJob(order, new Date(now()).toISOString());
    transaction(() => {
      jobs.add(job, account.id);
      jobs.prune(keptJobs);
    });
    runner.add({ job, accountId: account.id });
    return job;
  };
}

/** @throws ApiError for a format that the tier does not have. */
function checkFormats(order: JobOrder, tiers: Tiers, tier: TierName): void {
  const { formats } = tiers[tier];
  if (formats === null) return;
  const field = (['input_format', 'output_format'] as const).find((name) => !formats.includes(order[name]));
  if (field === undefined) return;
  throw new ApiError(forbidden({ field, message: `the tier ${tier} takes ${formats.join(', ')} alone` }));
}
