// What every HTTP server of ours uses: the app, the server and its limits, connections, proxies, error answers, health. Does
// not know these servers.
// The door of this room: other rooms import from this file alone.

export { createAppBehind, createExactApp, finishApp } from './app.ts';
export { composeConnections } from './compose.ts';
export type { ConnectionLimits, Connections } from './connections.ts';
export { NOSNIFF, type StandingHeaders, closeIfUnread, hangUp, onlyGet } from './errors.ts';
export { type Readiness, livez, readyz } from './health.ts';
export { createStop, listen } from './lifecycle.ts';
export { type LimitedLines, createLimitedLines } from './limited-lines.ts';
export {
  type TrustedProxies,
  createTrustedProxies,
  ownOrigins,
  peerOf,
  senderOf,
} from './proxies.ts';
export { type HttpServer, startServer } from './server.ts';
