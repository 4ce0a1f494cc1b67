// What the text of a URL must look like, before any DNS lookup. `new URL` turns decimal, octal, hexadecimal and full-width
// forms of an IPv4 address into the usual one, so they are checked as what they are.

import { isIP } from 'node:net';
import { mayReach } from './ranges.ts';

export const URL_MAX_LENGTH = 2_048;

const HTTPS = /^https:\/\//i;
const HTTPS_OR_HTTP = /^https?:\/\//i;
/** The URL parser silently drops some of these and reads a backslash as a slash; other parsers do not. */
const UNCLEAR = /[\s\p{Cc}\\]/u;
/** Lower ports are for mail, shells and the like, which nobody may reach through the sandbox. */
const FIRST_FREE_PORT = 1_024;

/**
 * `localOrigins` are allowed as if `allowLocal` were true.
 * @returns undefined if it may be used, or what the URL must be, in words for the client.
 */
export function urlFault(
  text: string,
  options: { allowLocal: boolean; localOrigins?: readonly string[] },
): string | undefined {
  if (text.length > URL_MAX_LENGTH) return `must be no longer than ${URL_MAX_LENGTH} characters`;
  if (UNCLEAR.test(text)) return 'must not hold spaces, backslashes or control characters';
  const allowLocal = options.allowLocal || isOneOf(options.localOrigins ?? [], text);
  const scheme = allowLocal ? HTTPS_OR_HTTP : HTTPS;
  if (!scheme.test(text) || !URL.canParse(text))
    return `must be an absolute ${allowLocal ? 'https:// or http://' : 'https://'} URL`;
  const url = new URL(text);
  if (url.username !== '' || url.password !== '') return 'must not hold a user name or password';
  if (!isPortAllowed(url)) return 'must use the usual port, or one from 1024 up';
  if (!isHostAllowed(url.hostname, allowLocal)) return 'must not name a private, local or reserved host';
}

function isOneOf(origins: readonly string[], text: string): boolean {
  return URL.canParse(text) && origins.includes(new URL(text).origin);
}

/** `port` is empty for the default port of the scheme. */
function isPortAllowed({ port }: URL): boolean {
  return port === '' || port === '443' || port === '80' || Number(port) >= FIRST_FREE_PORT;
}

/** All other names are checked at the connection, by what they resolve to. */
function isHostAllowed(hostname: string, allowLocal: boolean): boolean {
  const host = bareHost(hostname).replace(/\.+$/, '');
  if (isIP(host) !== 0) return mayReach(host, { allowLocal });
  // RFC 6761: these names always mean this machine, whatever DNS says.
  const isLocalhost = host === 'localhost' || host.endsWith('.localhost');
  return host !== '' && (!isLocalhost || allowLocal);
}

/** Without the brackets of an IPv6 address. */
function bareHost(hostname: string): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
}
