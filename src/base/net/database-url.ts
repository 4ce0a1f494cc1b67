// The servers that a Postgres URL names: one, or several with commas between them, as libpq takes them:
// postgres://user:password@host1:5432,host2:5432/database?target_session_attrs=read-write

import { z } from 'zod';

/** A user or a password may have a comma or an @. */
const PARTS = /^(?<before>postgres(?:ql)?:\/\/(?:(?<user>[^/?#]*)@)?)(?<hosts>[^/?#@]*)(?<behind>.*)$/is;
/** More than any cluster has. Each is asked when the primary is looked for. */
const SERVERS_MAX = 16;
/** What libpq takes for a server that can be written. Another one would be of no use: each delivery is a write. */
const WRITABLE = ['read-write', 'primary'];
const ATTRIBUTE = 'target_session_attrs';

/** One URL for each server, in their order: without `target_session_attrs`, which neither pg nor a pooler knows. */
export function databaseUrls(text: string): readonly [string, ...string[]] {
  const { before = '', hosts = '', behind = '' } = PARTS.exec(text.trim())?.groups ?? {};
  const urlOf = (host: string) => withoutAttribute(`${before}${host}${behind}`);
  const [first = '', ...others] = hosts.split(',');
  return [urlOf(first), ...others.map(urlOf)];
}

function withoutAttribute(text: string): string {
  if (!text.includes(ATTRIBUTE)) return text;
  const url = new URL(text);
  url.searchParams.delete(ATTRIBUTE);
  return url.href;
}

export const databaseUrlForm = () =>
  z.string('must be set').check(({ value, issues }) => {
    const message = faultOf(value);
    if (message !== undefined) issues.push({ code: 'custom', message, input: value });
  });

/** What is wrong with it, without its words: it has a password. Undefined if nothing is. */
function faultOf(text: string): string | undefined {
  const { before = '', user = '', hosts = '', behind = '' } = PARTS.exec(text.trim())?.groups ?? {};
  if (before === '' || !/^(?:[/?#]|$)/.test(behind)) return NO_URL;
  const each = hosts.split(',');
  const { pathname, searchParams } = new URL(`postgres://host${behind}`);
  // What would be taken for a password, or for the name of a database.
  if (/@[^@]*,/.test(user) || /[,@]|:\/\//.test(pathname)) return TWO_URLS;
  if (each.length > 1 && each.includes('')) return 'has an empty host between commas';
  if (!each.every((host) => URL.canParse(`${before}${host}${behind}`)))
    return each.length > 1 ? 'has a host or a port that is none: write host1:5432,host2:5432' : NO_URL;
  if (each.length > SERVERS_MAX) return `names more than ${SERVERS_MAX} hosts`;
  if (new Set(each).size < each.length) return 'names one host twice';
  return faultInQuery(searchParams, each.length > 1);
}

const NO_URL = 'must be a URL that starts with postgres:// or postgresql://';
const TWO_URLS =
  'names several URLs, or the user twice: write one URL, with the hosts and commas between them (user:password@host1:5432,host2:5432)';

function faultInQuery(query: URLSearchParams, hasSeveral: boolean): string | undefined {
  const addresses = ['host', 'port'].flatMap((name) => query.getAll(name));
  if (addresses.some((value) => value.includes(',')) || (hasSeveral && addresses.length > 0))
    return 'names hosts by ?host= or ?port=: write several before the database, with commas between them';
  const wanted = query.getAll(ATTRIBUTE).filter((value) => value !== '');
  // With one server there is no choice.
  return wanted.every((value) => WRITABLE.includes(value) || (value === 'any' && !hasSeveral))
    ? undefined
    : `has a ${ATTRIBUTE} that is not read-write: each delivery is a write`;
}
