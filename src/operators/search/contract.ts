// Search: what one box takes, and what it leads to.

import { z } from 'zod';
import { timestamp } from '../kernel/list/fields.contract.ts';
import { pasted } from '../kernel/list/filters.contract.ts';

/** Of each kind. */
export const SEARCH_MAX = 25;
/** A shorter text is inside of nearly every id. */
export const PART_LENGTH_MIN = 3;

const what = z.enum(['job', 'event', 'delivery', 'replay', 'error_code', 'source', 'job_prefix', 'job_part']);

export const SearchItem = z
  .object({
    what: what.describe(
      '`job_prefix`: a job whose id begins with the text. `job_part`: a newer one that has it anywhere in its id, whatever the case.',
    ),
    id: z.string().describe('Of the job, event, delivery or replay; the error code; the name of the source.'),
    source: z.string().nullable().describe('Null for replays and error codes.'),
    state: z
      .string()
      .nullable()
      .describe(
        'Of a job and a replay: the state. Of a job without an event, and of a delivery: the outcome. Of an event: the kind. ' +
          'Of a source: `configured`, or null. Of an error code: null.',
      ),
    at: timestamp
      .nullable()
      .describe(
        'Of a job: when it was last heard of. Of others: when it came in or was made. Of an error code and a source: the newest.',
      ),
  })
  .meta({ id: 'SearchItem', description: 'Something that the text leads to.' });

export const SearchAnswer = z
  .object({
    items: z.array(SearchItem).describe(`At most ${SEARCH_MAX} of a kind; exact ones first.`),
    more_of: z.array(what).describe('The kinds of which there are more.'),
    looked_through: z
      .object({
        jobs: z.int().min(0).describe('How many of the newest ones.'),
        back_to: timestamp
          .nullable()
          .describe(
            'All jobs that were first seen since then were looked through. Null: all that there are.',
          ),
      })
      .nullable()
      .optional()
      .describe(
        `How far it looked for the text inside of jobs’ ids. Null if it did not, since the text names something, or has less than ${PART_LENGTH_MIN} characters.`,
      ),
  })
  .meta({ id: 'SearchAnswer', description: 'What the text leads to.' });

export const searchQuery = {
  q: pasted(256).describe(
    'The id of a job, an event, a delivery or a replay, an error code, the name of a source, or a part of a job’s id.',
  ),
};

export type SearchItem = z.infer<typeof SearchItem>;
export type SearchAnswer = z.infer<typeof SearchAnswer>;
