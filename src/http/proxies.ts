// Who sent a request that came through proxies of ours. What `X-Forwarded-…` say is believed of the peers in
// TRUSTED_PROXIES and of nobody else: anybody can write these headers. Express walks the hops from the right, by the
// app's setting `trust proxy`; here stands which addresses it trusts, and what becomes of a hop that is no address.

import { isIP } from 'node:net';
import type { Request } from 'express';
import ipaddr from 'ipaddr.js';

type Address = ReturnType<typeof ipaddr.parse>;
type Range = readonly [address: Address, bits: number];

export type TrustedProxies = {
  /**
   * Of a socket's peer, or a hop as a header has it; false for what is no address. Express' `trust proxy`. IPv4 in
   * IPv6's form (`::ffff:10.0.0.1`, as a socket of both has it) is IPv4. `hop` counts from the peer, which is 0.
   */
  readonly isTrusted: (address: string | undefined, hop?: number) => boolean;
  /** A range is a whole address family: whoever reaches us can claim any address. */
  readonly trustsEverybody: boolean;
};

/** In a row, the peer among them; real ways have two or three. A header has room for 2,000, which took 10 ms to walk. */
const MAX_PROXIES = 16;

/** Some balancers give hops their ports; an IPv6 address then has brackets, or nobody could tell where it ends. */
const HOP_WITH_PORT = /^(?:([\d.]{7,15}):\d{1,5}|\[([\da-f:.]{2,45})\](?::\d{1,5})?)$/i;

/** `ranges`: each one that `parseRange` takes. */
export function createTrustedProxies(ranges: readonly string[]): TrustedProxies {
  const trusted = ranges.map(parseRange).filter((range) => range !== undefined);
  return {
    isTrusted: (text, hop = 0) => {
      if (hop >= MAX_PROXIES) return false;
      const address = parseHop(text);
      if (address === undefined) return false;
      return trusted.some(
        ([network, bits]) => network.kind() === address.kind() && address.match(network, bits),
      );
    },
    trustsEverybody: trusted.some(([, bits]) => bits === 0),
  };
}

/** An address (`10.0.0.7`, `2001:db8::7`) or a CIDR range of them (`10.0.0.0/8`); undefined for anything else. */
export function parseRange(text: string): Range | undefined {
  const family = isIP(text);
  const cidr = family === 0 ? text : `${text}/${family === 4 ? 32 : 128}`;
  // ipaddr.js alone takes what nobody means, such as `1/8` and `0x0a.1/16`.
  if (isIP(cidr.split('/', 1)[0] ?? '') === 0 || !ipaddr.isValidCIDR(cidr)) return undefined;
  const [network, bits] = ipaddr.parseCIDR(cidr);
  return 'toIPv4Address' in network && network.isIPv4MappedAddress() && bits >= 96
    ? [network.toIPv4Address(), bits - 96]
    : [network, bits];
}

/**
 * The right-most hop of all `X-Forwarded-For` lines that is no trusted proxy, in its usual spelling; the left-most one if
 * all are, or the sixteenth from the right. What is no address ends the walk: the sender is then the hop before, which wrote it, and at worst the
 * peer. Without a trusted peer it is the peer as the socket names it; null when that is gone already.
 */
export function senderOf(request: Request): string | null {
  const peer = peerOf(request);
  if (request.headers['x-forwarded-for'] === undefined) return peer;
  // The farthest first. All but that one are trusted, so they are addresses.
  const [farthest, before] = request.ips;
  const sender = parseHop(farthest) ?? parseHop(before);
  return sender?.toString() ?? peer;
}

/** The other end of the connection. */
export function peerOf(request: Request): string | null {
  return request.socket.remoteAddress ?? null;
}

/** What a browser calls the place where this request went. A scheme that no trusted proxy tells may be either. */
export function ownOrigins(request: Request): readonly string[] {
  const { host, protocol } = request;
  const isTold = request.headers['x-forwarded-proto'] !== undefined && hasTrustedPeer(request);
  return (isTold ? [protocol] : ['http', 'https']).map((scheme) => `${scheme}://${host}`.toLowerCase());
}

function hasTrustedPeer(request: Request): boolean {
  const isTrusted = request.app.get('trust proxy fn') as (address: string | null, hop: number) => boolean;
  return isTrusted(peerOf(request), 0);
}

function parseHop(text: string | undefined): Address | undefined {
  const hop = text?.trim() ?? '';
  const [, ipv4, ipv6] = HOP_WITH_PORT.exec(hop) ?? [];
  const plain = ipv4 ?? ipv6 ?? hop;
  if (isIP(plain) === 0) return undefined;
  // The zone of a link-local address says something on its own machine alone, and may be of any length.
  return ipaddr.process(plain.replace(/%.*/, ''));
}
