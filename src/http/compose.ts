// The connections of one server, and the requests that could not be read, with their metrics.

import type { ConnectionEnd, Face, UnparsedKind } from '../base/closed-sets.ts';
import type { Parts } from '../base/parts.ts';
import { type ConnectionLimits, type Connections, createConnections } from './connections.ts';
import { createUnparsed, type Unparsed } from './unparsed.ts';

type ConnectionOptions = {
  /** Names the server in the log and in metrics. */
  readonly face: Face;
  readonly limits: ConnectionLimits;
  readonly isExempt: (remoteAddress: string) => boolean;
};

const OPEN = { intake: 'tallyhook_connections', operators: 'tallyhook_operator_connections' } as const;

export function composeConnections(
  { face, limits, isExempt }: ConnectionOptions,
  { log, metrics, now }: Parts,
): Connections {
  const observe = (reason: ConnectionEnd) => metrics.connectionEnds.inc({ face, reason });
  const connections = createConnections({ name: face, limits, isExempt, now, log, observe });
  metrics.gauge(OPEN[face], connections.open);
  return connections;
}

export function composeUnparsed(face: Face, { log, metrics, started }: Parts): Unparsed {
  const observe = (kind: UnparsedKind) => metrics.unparsed.inc({ face, kind });
  const unparsed = createUnparsed({ name: face, log, observe });
  started.defer(unparsed.close);
  return unparsed;
}
