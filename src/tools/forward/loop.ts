// Keeps `tallyhook forward` out of a loop: what it posts to the relay itself arrives there as a new delivery, which would be
// forwarded again, and so on.

import { createRecentIds } from '../../base/collections/recent-ids.ts';
import type { Env } from '../../config.ts';
import { withLocalRun } from '../../terminal/environment.ts';
import { webhookUrlOf } from '../send/local-relay.ts';

/** Above what the relay can have accepted and not told yet. */
const REMEMBERED_MAX = 20_000;
const LOOPBACK = ['127.0.0.1', 'localhost', '[::1]'];

export type Forwarded = {
  readonly add: (deliveryId: string) => void;
  /** Whether a delivery with these headers is one that we posted: its X-Request-Id is the id of another delivery. */
  readonly isOurs: (headers: Readonly<Record<string, unknown>> | null | undefined) => boolean;
};

export function createForwarded(): Forwarded {
  const ids = createRecentIds(REMEMBERED_MAX);
  return { add: ids.add, isOurs: (headers) => ids.has(String(headers?.['x-request-id'])) };
}

/** Whether this is the webhook address of the relay on this machine. */
export function isLocalRelay({ hostname, port, pathname }: URL, env: Env): boolean {
  const relay = new URL(webhookUrlOf(withLocalRun(env)));
  return LOOPBACK.includes(hostname) && port === relay.port && pathname.startsWith(relay.pathname);
}
