// An order about entries or deliveries, as decisions carry it out: a page of it in one transaction.

import type { Position } from '../list/cursor.ts';

/** Which ones: those that are named, or those that match a filter, oldest first. */
export type Which<Filter> =
  | { readonly ids: readonly string[]; readonly filter?: undefined }
  | { readonly filter: Filter; readonly ids?: undefined };

export type Selection<Filter> = {
  readonly which: Which<Filter>;
  /** Null for all. What is named and of other sources counts as not there. */
  readonly sources: readonly string[] | null;
};

export type Order<Filter> = Selection<Filter> & {
  /** Where the call before ended; undefined for the first one. */
  readonly after: Position | undefined;
  readonly limit: number;
  /** Who decides, by the token's name. */
  readonly by: string;
};
