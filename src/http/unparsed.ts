// Requests that are refused before there is a request: what Node's parser does not take, or what we refuse by its head alone.
// They reach no route, so nothing else tells of them: each is counted by kind, and a few lines a second say what it probably is,
// and what to do. What was sent is never logged, since it may hold secrets.

import type { Logger } from 'pino';
import type { UnparsedKind } from '../base/closed-sets.ts';
import { createLimitedLines } from './limited-lines.ts';

/** What it probably is, and what to do. */
const KINDS: Readonly<Record<UnparsedKind, string>> = {
  tls: 'TLS on a port of plain HTTP: use http:// there, or let a proxy in front end the TLS',
  proxy_protocol:
    'the PROXY protocol, which is not read: switch it off in the balancer, and let it send X-Forwarded-For (TRUSTED_PROXIES)',
  http2: 'HTTP/2 without TLS, which is not read: let the proxy in front speak HTTP/1.1 to this port',
  repeated_length:
    'a length twice, or beside chunks, which two servers could read in two ways: find the client or the proxy that adds one',
  headers_too_large: 'headers beyond the limit: find out what adds to them, often cookies or a proxy',
  timeout:
    'a request that did not arrive in time: a slow or broken client, or a connection that a balancer opens ahead',
  cut: 'a request that ended before it was whole: the client, or a proxy before it, gave up',
  no_host: 'none or several Host headers: the client, or a proxy before it, must send exactly one',
  connect: 'CONNECT: somebody takes this port for a proxy',
  expectation: 'an Expect header other than 100-continue: take it out of the client',
  other: 'no HTTP/1.1 that can be read: another protocol, or a client that writes wrong HTTP',
};

export type Unparsed = {
  /** `remote`: the other end of the connection. */
  readonly note: (kind: UnparsedKind, remote: string | undefined) => void;
  /** Logs the last counts and stops. */
  readonly close: () => void;
};

export function createUnparsed(options: {
  /** For the log. */
  name: string;
  log: Logger;
  observe: (kind: UnparsedKind) => void;
}): Unparsed {
  const { name, log, observe } = options;
  const limited = createLimitedLines({
    tellRest: (kinds) => log.warn({ connections: name, kinds }, 'more requests could not be read'),
  });
  return {
    note: (kind, remote) => {
      observe(kind);
      const fields = { connections: name, kind, remote, hint: KINDS[kind] };
      limited.write(kind, () => log.warn(fields, 'a request could not be read'));
    },
    close: limited.close,
  };
}

/** By the code of Node's parser. */
const CODES: Readonly<Record<string, UnparsedKind>> = {
  HPE_UNEXPECTED_CONTENT_LENGTH: 'repeated_length',
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'timeout',
  HPE_INVALID_EOF_STATE: 'cut',
};

/** The first bytes of other protocols: a TLS handshake record, both versions of the PROXY protocol, and HTTP/2. */
const BEGINNINGS: readonly (readonly [string, UnparsedKind])[] = [
  ['\x16\x03', 'tls'],
  ['PROXY ', 'proxy_protocol'],
  ['\r\n\r\n\0\r\nQUIT\n', 'proxy_protocol'],
  ['PRI * HTTP/2', 'http2'],
];
const BEGINNING_BYTES = 12;

/** The parser ends like this where we stop it (server.ts). */
const STOPPED = 'HPE_CB_HEADERS_COMPLETE';

/** Of a server's `clientError`. Undefined where it is no request: a reset, or a parser that we stopped. */
export function kindOfError(
  error: NodeJS.ErrnoException & { rawPacket?: unknown },
): UnparsedKind | undefined {
  const { code = '', rawPacket } = error;
  if (code === 'ECONNRESET' || code === STOPPED) return undefined;
  const known = CODES[code];
  if (known !== undefined || !Buffer.isBuffer(rawPacket)) return known ?? 'other';
  const beginning = rawPacket.toString('latin1', 0, BEGINNING_BYTES);
  return BEGINNINGS.find(([bytes]) => beginning.startsWith(bytes))?.[1] ?? 'other';
}
