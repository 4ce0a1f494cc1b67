// The check `address`: whether the name has addresses, and whether they take connections.

import { lookup } from 'node:dns/promises';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { failed, type Finding, ok, warning } from './doctor-finding.ts';
import type { Endpoint } from './doctor-probe.ts';
import { NOTHING_LISTENS } from './environment.ts';
import { reasonOf } from './no-answer.ts';

/** A name has a few addresses. */
const ADDRESSES_MAX = 8;
const PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 };

export const portOf = ({ port, protocol }: URL): number => Number(port) || (PORTS[protocol] ?? 0);
/** Without the brackets of an IPv6 address. */
export const hostOf = ({ hostname }: URL): string => hostname.replaceAll(/^\[|\]$/g, '');

export const isLoopback = (url: URL): boolean => /^(?:localhost|127(?:\.\d+){3}|::1)$/.test(hostOf(url));

type Contact = { readonly address: string; readonly reason?: string };

export async function checkAddress({ url, timeoutMs }: Endpoint): Promise<Finding> {
  let addresses: readonly string[];
  try {
    addresses = await resolve(hostOf(url), timeoutMs);
  } catch (error) {
    const mend = 'correct the name in the address, or add it to your DNS';
    return failed('address', { found: reasonOf(error, url), mend });
  }
  return judge(await Promise.all(addresses.map((address) => contact(address, url, timeoutMs))), url);
}

function judge(contacts: readonly Contact[], url: URL): Finding {
  const details = { addresses: contacts.map(({ address }) => address) };
  const dead = contacts.flatMap(({ address, reason }) =>
    reason === undefined ? [] : `${address}: ${reason}`,
  );
  if (dead.length === 0) return ok('address', `connects to ${details.addresses.join(', ')}`, details);
  const found = dead.join('; ');
  if (dead.length < contacts.length) {
    return warning(
      'address',
      {
        found,
        mend: 'other addresses connect, but senders may try any of them: mend this one, or remove it from your DNS',
      },
      details,
    );
  }
  const mend = isLoopback(url)
    ? NOTHING_LISTENS
    : 'start the service and the proxy, and let the firewall pass this port';
  return failed('address', { found, mend });
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
    const host = `port ${port}`;
    socket.once('error', (error) => end({ address, reason: reasonOf(error, { host, hostname: address }) }));
  });
}
