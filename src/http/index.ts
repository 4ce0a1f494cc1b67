// What every HTTP server of ours uses: the app, the server and its limits, connections, proxies, error answers, health. Does
// not know these servers.
// The door of this room: other rooms import from this file alone.

export { createAppBehind, createExactApp, finishApp } from './app.ts';
export { composeConnections, composeUnparsed } from './compose.ts';
export type { ConnectionLimits, Connections } from './connections.ts';
export { peerAddress } from './address.ts';
export {
  HTTP_ERRORS,
  NOSNIFF,
  type StandingHeaders,
  closeIfUnread,
  hangUp,
  notFound,
  onlyGet,
} from './errors.ts';
export { type Readiness, livez, readyz } from './health.ts';
export { createStop, listen } from './lifecycle.ts';
export { createReadiness } from './readiness.ts';
export { type LimitedLines, createLimitedLines } from './limited-lines.ts';
export {
  type TrustedProxies,
  createTrustedProxies,
  ownOrigins,
  peerOf,
  senderOf,
} from './proxies.ts';
export { HEADERS_TIMEOUT_MS, type HttpServer, MAX_HEADER_BYTES, startServer } from './server.ts';
