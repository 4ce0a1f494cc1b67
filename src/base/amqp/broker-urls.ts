// The nodes of a broker: one URL, or several with commas between them, as for a cluster without a balancer before it.

import { z } from 'zod';

/** A password may have a comma, so only one before the next scheme divides. */
const DIVIDER = /\s*,\s*(?=amqps?:\/\/)/;
/** More than any cluster has: quorum queues have up to nine members. */
const URLS_MAX = 16;

export const brokerUrls = (text: string): readonly string[] => text.split(DIVIDER);

/** @param unset what is said where there is none */
export const brokerUrlsForm = (unset: string) =>
  z.string(unset).check(({ value, issues }) => {
    const message = faultOf(value);
    if (message !== undefined) issues.push({ code: 'custom', message, input: value });
  });

/** What is wrong with it, without its words: it has a password. Undefined if nothing is. */
function faultOf(text: string): string | undefined {
  const urls = brokerUrls(text);
  if (urls.length > URLS_MAX) return `has more than ${URLS_MAX} URLs`;
  if (!urls.every(isBrokerUrl)) {
    return urls.length === 1
      ? 'must be a URL that starts with amqp:// or amqps://'
      : 'must be URLs that start with amqp:// or amqps://, with commas between them';
  }
  const hosts = urls.map((url) => new URL(url).hostname);
  return hosts.some((host) => host.includes(','))
    ? 'names several hosts in one URL: write one whole URL for each, with commas between them'
    : undefined;
}

function isBrokerUrl(text: string): boolean {
  return URL.canParse(text) && ['amqp:', 'amqps:'].includes(new URL(text).protocol);
}

export const areEncrypted = (text: string): boolean =>
  brokerUrls(text).every((url) => new URL(url).protocol === 'amqps:');

export type Turns = {
  readonly count: number;
  /** The URL for the next connection. */
  readonly next: () => string;
};

/** Each in its turn, in an order by chance: when a node goes, its connections spread over all others. */
export function createTurns(text: string, random: () => number = Math.random): Turns {
  const urls = brokerUrls(text)
    .map((url) => ({ url, place: random() }))
    .toSorted((a, b) => a.place - b.place)
    .map(({ url }) => url);
  let turn = 0;
  return {
    count: urls.length,
    next: () => {
      const url = urls[turn % urls.length] as string;
      turn += 1;
      return url;
    },
  };
}
