// The content of an event, as it is published, made from the body of its delivery: the same bytes each time.

import type { JobEvent } from './event.ts';
import { type AuthenticBody, understand } from './understand.ts';

/** `unreadable`: why nothing can be published, for people. */
export type Content =
  | (Pick<JobEvent, 'occurredAt' | 'data'> & { readonly unreadable?: never })
  | { readonly unreadable: string; readonly occurredAt?: never; readonly data?: never };

/** @param body null if it is no longer kept */
export function contentOf(body: AuthenticBody | null): Content {
  if (body === null) return { unreadable: 'its body is no longer kept' };
  const understood = understand(body);
  if (understood.outcome !== 'event') {
    return { unreadable: `it is not understood any more: ${understood.reason}` };
  }
  const { occurredAt, data } = understood.event;
  return { occurredAt, data };
}
