// Who sent a request that came through our own proxies. `X-Forwarded-…` headers are used only if they come from a peer in
// TRUSTED_PROXIES, since anybody can write them. Express walks the hops from the right, by the app's setting `trust proxy`.
// This file says which addresses it trusts, and handles hops that are no addresses.

import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import type { Request } from 'express';
import ipaddr from 'ipaddr.js';
import { parseRange } from '../base/net/ip-range.ts';
import { peerAddress } from './address.ts';

type Address = ReturnType<typeof ipaddr.parse>;

export type TrustedProxies = {
  /**
   * Whether the peer of a socket or a hop of the header is trusted; false for what is no address. The value of Express' `trust
   * proxy`. IPv4 in the form of IPv6 (`::ffff:10.0.0.1`, as dual-stack sockets have it) is IPv4. The peer is `hop` 0.
   */
  readonly isTrusted: (address: string | undefined, hop?: number) => boolean;
  /** A range covers a whole address family: anybody who reaches us can claim any address. */
  readonly trustsEverybody: boolean;
};

/** In a row, the peer included; real chains have two or three. A header has room for 2,000, which took 10 ms to walk. */
const MAX_PROXIES = 16;

/** Some balancers add the port of a hop; an IPv6 address is then in brackets. */
const HOP_WITH_PORT = /^(?:([\d.]{7,15}):\d{1,5}|\[([\da-f:.]{2,45})\](?::\d{1,5})?)$/i;

/** `ranges`: each one is valid for `parseRange`. */
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

/**
 * The right-most hop of all `X-Forwarded-For` lines that is no trusted proxy, in its usual spelling; if all are trusted, the
 * left-most one, or the sixteenth from the right. A hop that is no address ends the walk: the sender is then the proxy that
 * wrote it. Without a trusted peer the sender is the peer; null when the socket is closed already.
 */
export function senderOf(request: Request): string | null {
  const peer = peerOf(request);
  if (request.headers['x-forwarded-for'] === undefined) return peer;
  // The farthest hop comes first. All others are trusted, so they are addresses.
  const [farthest, before] = request.ips;
  const sender = parseHop(farthest) ?? parseHop(before);
  return sender?.toString() ?? peer;
}

/** The other end of the connection. */
export function peerOf(request: IncomingMessage): string | null {
  return peerAddress(request.socket) ?? null;
}

/** The `Origin` of a browser's page at the address of this request. Both schemes, unless a trusted proxy names one. */
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
  // The zone of a link-local address has a meaning on its own machine only, and may be of any length.
  return ipaddr.process(plain.replace(/%.*/, ''));
}
