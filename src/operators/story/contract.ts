// The story of a job: what happened to it, step by step.

import { z } from 'zod';
import { Delivery } from '../deliveries/contract.ts';
import { Event } from '../events/contract.ts';
import { Job } from '../jobs/contract.ts';
import { page, timestamp } from '../kernel/list/fields.contract.ts';
import { flag, jobId, paging, sourceName, wholeNumber } from '../kernel/list/filters.contract.ts';
import { Entry } from '../outbox/contract.ts';
import { Publication } from '../publications/contract.ts';
import { ReplayOfJob, ReplaySkip } from '../replays/contract.ts';

const STORY_ITEMS_MAX = 1_000;
export const STORY_ITEMS_DEFAULT = 500;

const OperatorAction = z
  .object({
    action: z.string(),
    actor: z.string(),
    subject: z.string(),
    result: z.string().optional().describe('Of a release, as `ReleaseResult` has it.'),
    note: z.string().optional().describe('Of a discard: why.'),
  })
  .meta({ id: 'OperatorAction', description: 'What an operator did with a delivery or an event.' });

export const ERROR_MESSAGE_MAX_LENGTH = 1_000;

const EventOfJob = Event.extend({
  error_message: z
    .string()
    .optional()
    .describe(
      `Of a failed event, for roles that may read bodies: at most ${ERROR_MESSAGE_MAX_LENGTH} characters, without invisible ` +
        'ones. A longer one is cut, and ends with `…`. Missing for other roles, and where the body is no longer kept.',
    ),
}).meta({ id: 'EventOfJob', description: 'An event, as a job’s story has it.' });

const moment = {
  at: timestamp,
  after_ms: z.int().nullable().describe('Since the item before; null for the first.'),
};
export const StoryItem = z
  .discriminatedUnion('what', [
    z.object({ ...moment, what: z.literal('delivery'), delivery: Delivery }),
    z.object({ ...moment, what: z.literal('event'), event: EventOfJob }),
    z.object({ ...moment, what: z.literal('operator'), operator: OperatorAction }),
    z.object({ ...moment, what: z.literal('replay'), replay: ReplayOfJob }),
    z.object({ ...moment, what: z.literal('replay_skip'), skip: ReplaySkip }),
    z.object({ ...moment, what: z.literal('publication'), publication: Publication }),
    z.object({ ...moment, what: z.literal('waiting'), entry: Entry }),
  ])
  .meta({
    id: 'StoryItem',
    description: 'One step of a job’s story. `waiting` is what is in the outbox now.',
  });

/** More are told of by the outbox and by the quarantine. */
export const HELD_BACK_MAX = 20;

const Quarantined = z
  .object({
    delivery_id: z.uuid(),
    received_at: timestamp,
    status: z.string().nullable(),
    reason: z.string().nullable(),
  })
  .meta({ id: 'QuarantinedOfJob', description: 'A delivery of the job that waits in quarantine.' });

const HeldBack = z
  .object({
    entries: z
      .array(Entry)
      .max(HELD_BACK_MAX)
      .describe('Its events in the outbox, without copies of replays.'),
    quarantined: z.array(Quarantined).max(HELD_BACK_MAX).describe('Its deliveries that wait in quarantine.'),
  })
  .meta({
    id: 'HeldBack',
    description: `What the job reported that is not on the bus now: the first ${HELD_BACK_MAX} of each, oldest first. Empty lists: all is.`,
  });

export const Story = page(StoryItem)
  .extend({
    job: Job.nullable().describe('Null if all its deliveries are in quarantine.'),
    held_back: HeldBack.optional(),
  })
  .meta({ id: 'Story', description: 'A job and what happened to it, in order.' });

export const storyOf = { source: sourceName, job_id: jobId };

export const storyPaging = {
  limit: wholeNumber(1, STORY_ITEMS_MAX).default(STORY_ITEMS_DEFAULT),
  cursor: paging.cursor,
  error_message: flag
    .optional()
    .describe('`false` leaves the error message out, and reads no body. `true` where not given.'),
};

export type HeldBack = z.infer<typeof HeldBack>;
export type StoryItem = z.infer<typeof StoryItem>;
