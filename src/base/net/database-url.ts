// The servers that a Postgres URL names: one, or several with commas between them, as libpq takes them:
// postgres://user:password@host1:5432,host2:5432/database?target_session_attrs=read-write

import { z } from 'zod';

/** A user or a password may have a comma or an @. */
const PARTS = /^(?<before>postgres(?:ql)?:\/\/(?:[^/?#]*@)?)(?<hosts>[^/?#@]*)(?<behind>.*)$/s;
/** More than any cluster has. Each is asked when the primary is looked for. */
const SERVERS_MAX = 16;
/** What libpq takes for a server that can be written. Another one would be of no use: each delivery is a write. */
const WRITABLE = ['read-write', 'primary'];
const ATTRIBUTE = 'target_session_attrs';

/** One URL for each server, in their order: without `target_session_attrs`, which neither pg nor a pooler knows. */
export function databaseUrls(text: string): readonly string[] {
  const { before = '', hosts = '', behind = '' } = PARTS.exec(text)?.groups ?? {};
  return hosts.split(',').map((host) => withoutAttribute(`${before}${host}${behind}`));
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
  const { before = '', hosts = '', behind = '' } = PARTS.exec(text)?.groups ?? {};
  const urls = hosts.split(',').map((host) => `${before}${host}${behind}`);
  const hasEmpty = urls.length > 1 && hosts.split(',').includes('');
  if (before === '' || hasEmpty || !urls.every((url) => URL.canParse(url)))
    return 'must be a URL that starts with postgres:// or postgresql://';
  if (urls.length > SERVERS_MAX) return `names more than ${SERVERS_MAX} hosts`;
  if (urls.length > 1 && hosts.split(',').some((host) => host === ''))
    return 'has an empty host between commas';
  const { searchParams } = new URL(urls[0] as string);
  if (searchParams.get('host')?.includes(',') === true)
    return 'names several hosts by ?host=: write them before the database, with commas between them';
  const wanted = searchParams.get(ATTRIBUTE);
  return wanted === null || WRITABLE.includes(wanted)
    ? undefined
    : `has a ${ATTRIBUTE} that is not read-write: each delivery is a write`;
}
