// Fields that the items of several lists have, and the form of a page.

import { z } from 'zod';
import { DELIVERY_OUTCOMES, PUBLICATION_RESULTS } from '../../../base/closed-sets.ts';

/** RFC 3339 in UTC with up to six digits of a second: as exact as Postgres keeps it. */
export const timestamp = z.iso.datetime();
/** A 64-bit number: JavaScript's cannot hold them all. */
export const digits = z.string().regex(/^\d{1,19}$/);

export const outcome = z.enum(DELIVERY_OUTCOMES);
export const eventStatus = z.enum(['processing', 'completed', 'failed']);
export const kind = z.enum(['progress', 'completed', 'failed']);
export const publicationResult = z.enum(PUBLICATION_RESULTS);
export const outboxState = z.enum(['pending', 'returned', 'parked']);

export const percentage = z.int().min(0).max(100).nullable();

/** Of a schema that has checks of its own: what the document says of them, as keywords of JSON Schema. */
export const documented = (keywords: object) => ({
  override: ({ jsonSchema }: { jsonSchema: object }) => void Object.assign(jsonSchema, keywords),
});

/** A page of a list. */
export function page<T extends z.ZodType>(item: T) {
  return z.object({
    items: z.array(item),
    next_cursor: z
      .string()
      .nullable()
      .describe(
        'For the page after this one; null where there is none. A page may be short, or empty, before.',
      ),
  });
}

const NOUNS: readonly string[] = ['conflict', 'duplicate'];

/** An outcome behind its count: `2 conflicts`, `2 refused`. */
export const outcomeWord = (name: string, count: number): string =>
  NOUNS.includes(name) && count !== 1 ? `${name}s` : name;
