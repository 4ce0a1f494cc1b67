// Opens connections for an undici dispatcher, each to an address that was checked. The check is on what the name
// resolves to for this very connection: an answer of DNS that was right a moment ago says nothing.

import { isIP, type LookupFunction } from 'node:net';
import { buildConnector } from 'undici';
import { mayReach } from './ranges.ts';

/** The host may not be reached. Its message does not say what it resolves to: that is our network's business. */
export class AddressError extends Error {
  override readonly name = 'AddressError';
  readonly code = 'address_refused';

  constructor() {
    super('the host is private, local or reserved, and may not be reached');
  }
}

/** For the name, the TCP and the TLS part together. */
const CONNECT_TIMEOUT_MS = 10_000;

export function createConnector({
  allowLocal,
  lookup,
}: {
  allowLocal: boolean;
  lookup: LookupFunction;
}): buildConnector.connector {
  const allows = (ip: string) => mayReach(ip, { allowLocal });
  const connect = buildConnector({
    lookup: guardLookup(lookup, allows),
    timeout: CONNECT_TIMEOUT_MS,
    allowH2: false,
  });
  return (options, callback) => {
    const { hostname, protocol } = options;
    const isProtocolAllowed = protocol === 'https:' || (allowLocal && protocol === 'http:');
    // For an address there is no lookup that could refuse it.
    const isLiteralAllowed = isIP(hostname) === 0 || allows(hostname);
    if (isProtocolAllowed && isLiteralAllowed) return connect(options, callback);
    // Like every connection, it fails after the call.
    process.nextTick(() => callback(new AddressError(), null));
  };
}

/** One forbidden address among many is enough: which of them is taken would be left to chance, or to an attacker. */
export function guardLookup(lookup: LookupFunction, allows: (ip: string) => boolean): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, found, family) => {
      if (error) return callback(error, found, family);
      const all = typeof found === 'string' ? [{ address: found, family: family ?? isIP(found) }] : found;
      const [first] = all;
      if (first === undefined || !all.every(({ address }) => allows(address)))
        return callback(new AddressError(), []);
      if (options.all) return callback(null, all);
      callback(null, first.address, first.family);
    });
  };
}
