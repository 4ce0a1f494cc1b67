// The nodes of a broker: one URL, or several with commas between them, as for a cluster without a balancer before it.

import { z } from 'zod';

/** A password may have a comma, so only one before the next scheme divides. */
const DIVIDER = /\s*,\s*(?=amqps?:\/\/)/i;
/** As they stand, before `URL` encodes them: the last `@` ends the account. */
const PARTS = /^amqps?:\/\/(?:(?<account>[^/?#]*)@)?(?<host>[^/?#@]*)(?<rest>.*)$/is;
/**
 * A divider in the name of the user, or behind a host and before another account: `u:p@h1:5672,u:p@h2`, `h1:5672,u:p@h2`. Any other
 * comma in an account is the password's.
 */
const HOST_IN_ACCOUNT = /^[^:]*[,;]|(?:^[^:]*:\d{1,5}\s*[,;]|@[\w.:[\]-]+[\s,;])[^:]*:/;
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
  return urls.map(secondNodeIn).find((fault) => fault !== undefined);
}

function isBrokerUrl(text: string): boolean {
  return PARTS.test(text.trim()) && URL.canParse(text);
}

/** A node that would be taken for a part of another one's URL, and its password for a part of a name that is shown. */
function secondNodeIn(url: string): string | undefined {
  const { account = '', host = '', rest = '' } = PARTS.exec(url.trim())?.groups ?? {};
  if (/[,;]/.test(host) || HOST_IN_ACCOUNT.test(account)) {
    return 'names several hosts in one URL: write one whole URL for each, with commas between them (in a password , is %2C and @ is %40)';
  }
  return /[,;\s]|:\/\//.test(rest)
    ? 'has a comma, a semicolon, white space or :// behind a host: write one whole URL for each node, with commas between them (in a name , is %2C, ; is %3B and a space is %20)'
    : undefined;
}

export const areEncrypted = (text: string): boolean =>
  brokerUrls(text).every((url) => new URL(url).protocol === 'amqps:');

export type Turns = {
  readonly count: number;
  /** The URL for the next connection. */
  readonly next: () => string;
};

/** Each in its turn, in random order: when a node goes, its connections spread over all others. */
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
