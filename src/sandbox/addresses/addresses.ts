// Which addresses the sandbox may reach for a client: inputs, outputs and webhooks all go through here. A URL is checked
// twice: its text when the client gives it, and its host's IP addresses at each connection. So neither an unusual
// spelling nor a name that changes its address leads into our network.

import { lookup as systemLookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { Agent, type Dispatcher } from 'undici';
import { version } from '../../base/version.ts';
import { createConnector } from './connector.ts';
import { urlFault } from './rule.ts';

export type Addresses = {
  /**
   * Checks the text of a URL, without DNS.
   * @returns undefined if it may be used, or why not, in words for the client.
   */
  readonly fault: (url: string) => string | undefined;
  /**
   * Connects to checked addresses only, or fails with an AddressError. Follows no redirect, reads no proxy settings, and
   * has no time-outs after connecting: each user limits the whole exchange. For undici's own `request` and `fetch`, since
   * those of Node can be of another version.
   */
  readonly dispatcher: Dispatcher;
  /** Cuts what is under way. Safe to call twice. */
  readonly close: () => Promise<void>;
};

export const USER_AGENT = `tallyhook-sandbox/${version}`;

/** To one host. Well above the limits on jobs and webhooks. */
const CONNECTIONS_PER_HOST = 64;
/** Short, since there are many hosts, and each is rarely used twice in a row. */
const KEEP_ALIVE_MS = 4_000;
const MAX_HEADER_BYTES = 16 * 1024;

/** `localOrigins` are allowed without `allowLocal`. `lookup` replaces the system's resolver. */
export function createAddresses({
  allowLocal,
  localOrigins = [],
  lookup = systemLookup,
}: {
  allowLocal: boolean;
  localOrigins?: readonly string[];
  lookup?: LookupFunction;
}): Addresses {
  const agent = new Agent({
    connect: createConnector({ allowLocal, localOrigins, lookup }),
    connections: CONNECTIONS_PER_HOST,
    pipelining: 1,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  return {
    fault: (url) => urlFault(url, { allowLocal, localOrigins }),
    dispatcher: agent,
    close: () => agent.destroy(),
  };
}
