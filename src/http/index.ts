// What every HTTP face stands on: an app, a server with its limits, whose connections stay, who a request comes from, error
// answers, health. Knows none of the faces.
// The door of this room: other rooms import from this file alone.

export { createAppBehind, createExactApp, finishApp } from './app.ts';
export {
  CONNECTION_ENDS,
  type ConnectionEnd,
  type ConnectionLimits,
  type Connections,
  createConnections,
} from './connections.ts';
export { NOSNIFF, type StandingHeaders, onlyGet } from './errors.ts';
export { type Readiness, livez, readyz } from './health.ts';
export { closeIfUnread, createStop, hangUp, listen } from './lifecycle.ts';
export { type LimitedLines, createLimitedLines } from './limited-lines.ts';
export {
  type TrustedProxies,
  createTrustedProxies,
  ownOrigins,
  parseRange,
  peerOf,
  senderOf,
} from './proxies.ts';
export { type HttpServer, startServer } from './server.ts';
