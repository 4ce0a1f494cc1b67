// Opens connections for undici, each to an IP address that was checked. The check is part of each connection's own DNS
// lookup, since the answer to an earlier lookup proves nothing (DNS rebinding).

import { isIP, type LookupFunction } from 'node:net';
import { buildConnector } from 'undici';
import { mayReach } from './ranges.ts';

/** The host may not be reached. The message does not say what its name resolves to, which could reveal our network. */
export class AddressError extends Error {
  override readonly name = 'AddressError';
  readonly code = 'address_refused';

  constructor() {
    super('the host is private, local or reserved, and may not be reached');
  }
}

/** For DNS, TCP and TLS together. */
const CONNECT_TIMEOUT_MS = 10_000;

/** `localOrigins` are allowed as if `allowLocal` were true. */
export function createConnector({
  allowLocal,
  localOrigins,
  lookup,
}: {
  allowLocal: boolean;
  localOrigins: readonly string[];
  lookup: LookupFunction;
}): buildConnector.connector {
  const everywhere = createChecked({ allowLocal, lookup });
  const toThisMachine = createChecked({ allowLocal: true, lookup });
  return (options, callback) => {
    const isKnown = localOrigins.includes(`${options.protocol}//${options.host}`);
    (isKnown ? toThisMachine : everywhere)(options, callback);
  };
}

function createChecked({
  allowLocal,
  lookup,
}: {
  allowLocal: boolean;
  lookup: LookupFunction;
}): buildConnector.connector {
  const allows = (ip: string) => mayReach(ip, { allowLocal });
  const connect = buildConnector({
    lookup: guard(lookup, allows),
    autoSelectFamily: true, // always asks `lookup` for all addresses
    timeout: CONNECT_TIMEOUT_MS,
    allowH2: false,
  });
  return (options, callback) => {
    const { hostname, protocol } = options;
    const isProtocolAllowed = protocol === 'https:' || (allowLocal && protocol === 'http:');
    // A host that is an IP address needs no lookup, so `lookup` cannot reject it.
    const isLiteralAllowed = isIP(hostname) === 0 || allows(hostname);
    if (isProtocolAllowed && isLiteralAllowed) return connect(options, callback);
    // Asynchronously, as every other connection fails.
    process.nextTick(() => callback(new AddressError(), null));
  };
}

/** One forbidden address among several is enough to fail: which of them is tried is up to chance or an attacker. */
function guard(lookup: LookupFunction, allows: (ip: string) => boolean): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, []);
      const isAllowed =
        Array.isArray(found) && found.length > 0 && found.every(({ address }) => allows(address));
      callback(isAllowed ? null : new AddressError(), isAllowed ? found : []);
    });
  };
}
