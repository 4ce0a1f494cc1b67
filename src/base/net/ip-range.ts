// Reads addresses and ranges of addresses, as the configuration has them.

import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

type Range = readonly [address: ReturnType<typeof ipaddr.parse>, bits: number];

/** An address (`10.0.0.7`, `2001:db8::7`) or a CIDR range of them (`10.0.0.0/8`); undefined for anything else. */
export function parseRange(text: string): Range | undefined {
  const family = isIP(text);
  const cidr = family === 0 ? text : `${text}/${family === 4 ? 32 : 128}`;
  // ipaddr.js also accepts forms that nobody means, such as `1/8` and `0x0a.1/16`.
  if (isIP(cidr.split('/', 1)[0] ?? '') === 0 || !ipaddr.isValidCIDR(cidr)) return undefined;
  const [network, bits] = ipaddr.parseCIDR(cidr);
  return 'toIPv4Address' in network && network.isIPv4MappedAddress() && bits >= 96
    ? [network.toIPv4Address(), bits - 96]
    : [network, bits];
}
