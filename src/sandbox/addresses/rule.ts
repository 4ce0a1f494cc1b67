// What a URL must look like before anybody asks DNS about it. `new URL` has read it as every client here will: it turns
// decimal, octal, hexadecimal and full-width forms of an IPv4 address into the usual one, so that they are seen.

import { isIP } from 'node:net';
import { mayReach } from './ranges.ts';

export const URL_MAX_LENGTH = 2_048;

const HTTPS = /^https:\/\//i;
const HTTPS_OR_HTTP = /^https?:\/\//i;
/** The URL parser drops some of these without a word and takes a backslash for a slash: who reads it may not. */
const UNCLEAR = /[\s\p{Cc}\\]/u;
/** Below are mail, shells and the like, which must not be spoken to through us. */
const FIRST_FREE_PORT = 1_024;

/** @returns undefined if it may be used, or why not: what the URL must be, in words for a client. */
export function urlFault(text: string, { allowLocal }: { allowLocal: boolean }): string | undefined {
  if (text.length > URL_MAX_LENGTH) return `must be no longer than ${URL_MAX_LENGTH} characters`;
  if (UNCLEAR.test(text)) return 'must not hold spaces, backslashes or control characters';
  const scheme = allowLocal ? HTTPS_OR_HTTP : HTTPS;
  if (!scheme.test(text) || !URL.canParse(text))
    return `must be an absolute ${allowLocal ? 'https:// or http://' : 'https://'} URL`;
  const url = new URL(text);
  if (url.username !== '' || url.password !== '') return 'must not hold a user name or password';
  if (!isPortAllowed(url)) return 'must use the usual port, or one from 1024 up';
  if (!isHostAllowed(url.hostname, allowLocal)) return 'must not name a private, local or reserved host';
}

/** `port` is empty for the scheme's own. */
function isPortAllowed({ port }: URL): boolean {
  return port === '' || port === '443' || port === '80' || Number(port) >= FIRST_FREE_PORT;
}

/** Other names are judged by what they resolve to, when somebody connects. */
function isHostAllowed(hostname: string, allowLocal: boolean): boolean {
  const host = bareHost(hostname).replace(/\.+$/, '');
  if (isIP(host) !== 0) return mayReach(host, { allowLocal });
  // RFC 6761: always the machine itself, whatever DNS says.
  const isLocalhost = host === 'localhost' || host.endsWith('.localhost');
  return host !== '' && (!isLocalhost || allowLocal);
}

/** Without the brackets of an IPv6 address. */
function bareHost(hostname: string): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
}
