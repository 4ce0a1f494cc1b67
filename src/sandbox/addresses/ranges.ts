// Which IP addresses may be connected to: public unicast addresses by their registration (RFC 6890). This is a list of
// what is allowed, since a list of what is forbidden would become incomplete.

import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** All IPv6 addresses assigned to the public so far (RFC 4291, 2.4). Others are local, translations or unassigned. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3');

/**
 * `allowLocal` adds the loopback addresses and no others.
 * @returns false for text that is no IP address.
 */
export function mayReach(ip: string, { allowLocal }: { allowLocal: boolean }): boolean {
  // ipaddr.js accepts more than addresses: `10.1`, for example.
  if (isIP(ip) === 0) return false;
  const address = ipaddr.parse(ip);
  // IPv6 forms that contain an IPv4 address (mapped, 6to4, NAT64, Teredo) have ranges of their own, so they are rejected.
  const range = address.range();
  if (range === 'loopback') return allowLocal;
  if (range !== 'unicast') return false;
  return address instanceof ipaddr.IPv4 || address.match(GLOBAL_UNICAST);
}
