// The check `address`: whether the name has addresses, and whether they take connections.

import { lookup } from 'node:dns/promises';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { NOTHING_LISTENS } from '../../terminal/environment.ts';
import { isUnrouted, reasonOf } from '../../terminal/no-answer.ts';
import { type Finding, failed, ok, warning } from './finding.ts';
import type { Endpoint } from './probe.ts';

/** A name has a few addresses. */
const ADDRESSES_MAX = 8;
const PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 };

export const portOf = ({ port, protocol }: URL): number => Number(port) || (PORTS[protocol] ?? 0);
/** Without the brackets of an IPv6 address. */
export const hostOf = ({ hostname }: URL): string => hostname.replaceAll(/^\[|\]$/g, '');

export const isLoopback = (url: URL): boolean => /^(?:localhost|127(?:\.\d+){3}|::1)$/.test(hostOf(url));

/** `isUnrouted`: this machine cannot reach it, as an IPv6 address without IPv6. Another one may. */
export type Contact = { readonly address: string; readonly reason?: string; readonly isUnrouted?: boolean };

export async function checkAddress({ url, timeoutMs }: Endpoint): Promise<Finding> {
  let addresses: readonly string[];
  try {
    addresses = await resolve(hostOf(url), timeoutMs);
  } catch (error) {
    const mend = 'correct the name in the address, or add it to your DNS';
    return failed('address', { found: reasonOf(error, url), mend });
  }
  return judgeContacts(await Promise.all(addresses.map((address) => contact(address, url, timeoutMs))), url);
}

/** Pure. */
export function judgeContacts(contacts: readonly Contact[], url: URL): Finding {
  const details = { addresses: contacts.map(({ address }) => address) };
  const alive = contacts.filter(({ reason }) => reason === undefined).map(({ address }) => address);
  const dead = contacts.filter(({ reason }) => reason !== undefined);
  const words = (some: readonly Contact[]) =>
    some.map(({ address, reason }) => `${address}: ${reason}`).join('; ');
  if (alive.length === 0) {
    const mend = isLoopback(url)
      ? NOTHING_LISTENS
      : 'start the service and the proxy, and let the firewall pass this port';
    return failed('address', { found: words(dead), mend });
  }
  // "localhost" is ::1, too, where a server often does not listen. No sender is told this name.
  const counted = isLoopback(url) ? [] : dead.filter((contacted) => !contacted.isUnrouted);
  if (counted.length === 0) return ok('address', `connects to ${alive.join(', ')}`, details);
  const mend = 'other addresses connect, but senders may try this one: mend it, or remove it from your DNS';
  return warning('address', { found: words(counted), mend }, details);
}

async function resolve(host: string, timeoutMs: number): Promise<readonly string[]> {
  const found = await Promise.race([lookup(host, { all: true }), late(timeoutMs)]);
  return found.slice(0, ADDRESSES_MAX).map(({ address }) => address);
}

async function late(timeoutMs: number): Promise<never> {
  await delay(timeoutMs, undefined, { ref: false });
  throw new Error('the name servers did not answer in time');
}

function contact(address: string, url: URL, timeoutMs: number): Promise<Contact> {
  const port = portOf(url);
  return new Promise((settle) => {
    const socket = connect({ host: address, port, timeout: timeoutMs });
    const end = (contacted: Contact) => {
      socket.destroy();
      settle(contacted);
    };
    socket.once('connect', () => end({ address }));
    socket.once('timeout', () => end({ address, reason: 'no answer in time' }));
    socket.once('error', (error) => {
      const reason = reasonOf(error, { host: `port ${port}`, hostname: address });
      end({ address, reason, isUnrouted: isUnrouted(error) });
    });
  });
}
