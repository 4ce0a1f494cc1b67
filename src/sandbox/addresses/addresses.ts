// Which addresses the sandbox may reach on a client's word: inputs, outputs and webhooks all go through here. A URL is
// judged twice, by its text when it is given and by its host's IP addresses at each connection, so that neither a
// clever spelling nor a name that changes its mind leads into our network.

import { lookup as systemLookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { Agent, type Dispatcher } from 'undici';
import { createConnector } from './connector.ts';
import { urlFault } from './rule.ts';

export { AddressError } from './connector.ts';

export type Addresses = {
  /**
   * Syntax and rule alone, without DNS: https only (http and loopback only with `allowLocal`), no credentials, bounded.
   * @returns undefined if it may be used, or why not, in words that can be shown to a client.
   */
  readonly fault: (url: string) => string | undefined;
  /**
   * Every connection of it goes to a checked address, or fails with an AddressError. It follows no redirect and reads
   * no proxy settings. For undici's own `request` and `fetch`: those of Node may be of another version.
   */
  readonly dispatcher: Dispatcher;
  /** Cuts what is still under way. Safe to call twice. */
  readonly close: () => Promise<void>;
};

/** To one host: more wait in line. Jobs and webhooks are bounded elsewhere, well below this. */
const CONNECTIONS_PER_HOST = 64;
/** A connection that nobody uses goes soon: hosts are many, and each is seldom asked again. */
const KEEP_ALIVE_MS = 4_000;
const MAX_HEADER_BYTES = 16 * 1024;

/** `lookup`: in the place of the system's resolver. */
export function createAddresses({
  allowLocal,
  lookup = systemLookup,
}: {
  allowLocal: boolean;
  lookup?: LookupFunction;
}): Addresses {
  const agent = new Agent({
    connect: createConnector({ allowLocal, lookup }),
    connections: CONNECTIONS_PER_HOST,
    pipelining: 1,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    maxHeaderSize: MAX_HEADER_BYTES,
  });
  return {
    fault: (url) => urlFault(url, { allowLocal }),
    dispatcher: agent,
    close: () => agent.destroy(),
  };
}
