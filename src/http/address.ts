// The address of the other end of a connection, in the one form in which it is limited, stored and logged.

/** A socket that listens on `::` names IPv4 peers like this. */
const MAPPED = '::ffff:';

/** IPv4 in the form of IPv6 (`::ffff:10.0.0.1`) is IPv4. Undefined for a socket that is closed already. */
export function peerAddress({
  remoteAddress,
}: {
  readonly remoteAddress?: string | undefined;
}): string | undefined {
  return remoteAddress?.startsWith(MAPPED) && remoteAddress.includes('.')
    ? remoteAddress.slice(MAPPED.length)
    : remoteAddress;
}
