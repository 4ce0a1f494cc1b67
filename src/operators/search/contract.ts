// Search: what one box takes, and what it leads to.

import { z } from 'zod';
import { timestamp } from '../kernel/list/fields.contract.ts';
import { pasted } from '../kernel/list/filters.contract.ts';

/** Of each kind. */
export const SEARCH_MAX = 25;

const what = z.enum(['job', 'event', 'delivery', 'replay', 'error_code', 'source', 'job_prefix']);

export const SearchItem = z
  .object({
    what: what.describe('`job_prefix`: a job whose id begins with the text.'),
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
  })
  .meta({ id: 'SearchAnswer', description: 'What the text leads to.' });

export const searchQuery = {
  q: pasted(256).describe(
    'The id of a job, an event, a delivery or a replay, an error code, the name of a source, or the beginning of a job’s id.',
  ),
};

export type SearchItem = z.infer<typeof SearchItem>;
export type SearchAnswer = z.infer<typeof SearchAnswer>;
