// Which IP addresses may be connected to. Only what is public unicast by its registration (RFC 6890): a list of what is
// forbidden would be out of date some day, and an address that merely carries another one in it is not public.

import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** All that is handed out to the public so far (RFC 4291, 2.4). The rest is local, a translation or unassigned. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3');

/**
 * `allowLocal` adds the loopback addresses and no others.
 * Whatever cannot be read as an address may not be reached.
 */
export function mayReach(ip: string, { allowLocal }: { allowLocal: boolean }): boolean {
  // Its own reading is wider than this: `10.1` would pass for an address.
  if (isIP(ip) === 0) return false;
  const address = ipaddr.parse(ip);
  // Of IPv6 forms that hold an IPv4 address (mapped, 6to4, NAT64, Teredo) each has a range of its own: not unicast.
  const range = address.range();
  if (range === 'loopback') return allowLocal;
  if (range !== 'unicast') return false;
  return address instanceof ipaddr.IPv4 || address.match(GLOBAL_UNICAST);
}
