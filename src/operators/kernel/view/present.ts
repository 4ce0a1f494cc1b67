// Whether there is anything to show.

import type { Content } from '../../../web/index.ts';

/** False for what a page shows as nothing. A 0 is something. */
export const isPresent = (content: Content): boolean =>
  content !== undefined && content !== null && content !== false && content !== '';
