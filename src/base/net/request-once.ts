// One HTTP request on a connection of its own, by Node's own agent and not undici's: it takes a CA, and with NODE_USE_ENV_PROXY it goes
// through the proxy that HTTPS_PROXY names. Follows no redirect.

import { type IncomingMessage, type OutgoingHttpHeaders, request as httpRequest } from 'node:http';
import { type RequestOptions, request as httpsRequest } from 'node:https';
import { version } from '../version.ts';

/** Resolves with the head of the answer. What comes behind it is the caller's to read, or to throw away. @throws Node's errors */
export function requestOnce(
  url: URL,
  {
    headers,
    body,
    ...options
  }: Omit<RequestOptions, 'headers'> & {
    readonly headers: OutgoingHttpHeaders;
    readonly body?: Buffer | undefined;
  },
): Promise<IncomingMessage> {
  const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
  const all = {
    'User-Agent': `tallyhook/${version}`,
    Connection: 'close', // requests are rare: a kept connection would be dead
    ...headers,
  };
  return new Promise((resolve, reject) => {
    const request = send(url, { ...options, headers: all }, resolve);
    request.on('error', reject);
    request.end(body);
  });
}
