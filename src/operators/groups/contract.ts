// How much waits of each kind: the groups of the outbox and of the quarantine.

import { z } from 'zod';
import { outboxState, timestamp } from '../kernel/list/fields.contract.ts';
import { COUNTED_MAX } from '../kernel/order/fields.contract.ts';
import { outboxFilters } from '../outbox/contract.ts';
import { quarantineFilters } from '../quarantine/contract.ts';

export const GROUPS_MAX = 100;

const { job_id: _job, ...ofOutbox } = outboxFilters;
export const outboxGroupFilters = {
  by: z.enum(['reason', 'queue', 'source']).default('reason').describe('`reason`: the last error.'),
  ...ofOutbox,
};

export const quarantineGroupFilters = {
  by: z.enum(['reason', 'source']).default('reason'),
  ...quarantineFilters,
};

const group = {
  value: z.string().nullable().describe('What they have in common; null if it is not set.'),
  count: z.int().min(1).max(COUNTED_MAX),
  count_is_exact: z.boolean().describe('False if there may be more: then it is a minimum.'),
  oldest_at: timestamp.describe('When the oldest one came.'),
  newest_at: timestamp.nullable().describe('When the newest one came. Null if not all were looked at.'),
};

const rest = {
  has_more: z.boolean().describe(`True if there are more than ${GROUPS_MAX} groups: these are the largest.`),
  complete: z
    .boolean()
    .describe(
      'False if there may be groups that are not shown: only the oldest ones of each state were looked at.',
    ),
};

export const OutboxGroups = z
  .object({
    items: z
      .array(
        z.object({
          ...group,
          state: outboxState,
          copies: z.boolean().describe('True: copies of replays. False: events.'),
        }),
      )
      .max(GROUPS_MAX),
    ...rest,
  })
  .meta({ id: 'OutboxGroups', description: 'What waits in the outbox, the largest group first.' });

/** The reason of entries without an error: they wait for their turn, for RabbitMQ, or behind an earlier event of their job. */
export const NO_ATTEMPT_FAILED = 'no attempt has failed';

export const QuarantineGroups = z
  .object({ items: z.array(z.object(group)).max(GROUPS_MAX), ...rest })
  .meta({ id: 'QuarantineGroups', description: 'What is in quarantine, the largest group first.' });

export type OutboxGroups = z.infer<typeof OutboxGroups>;
export type QuarantineGroups = z.infer<typeof QuarantineGroups>;
