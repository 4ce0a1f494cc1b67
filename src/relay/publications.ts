// What the ledger keeps of an attempt to publish.

import type { Publication } from './publisher.ts';

const DETAIL_MAX_LENGTH = 300;

/** Why it was not confirmed; null if it was, or if there was no attempt. */
export function publicationDetail(publication: Publication | undefined): string | null {
  if (publication === undefined || publication.result === 'confirmed') return null;
  return publication.detail.slice(0, DETAIL_MAX_LENGTH);
}
