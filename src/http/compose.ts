// The connections of one server, and the requests that could not be read, with their metrics.

import type { Parts } from '../base/parts.ts';
import {
  CONNECTION_ENDS,
  type ConnectionEnd,
  type ConnectionLimits,
  type Connections,
  createConnections,
} from './connections.ts';
import { createUnparsed, UNPARSED_KINDS, type Unparsed, type UnparsedKind } from './unparsed.ts';

type ConnectionOptions = {
  /** Names the server in the log and in metrics. */
  readonly face: string;
  readonly limits: ConnectionLimits;
  readonly isExempt: (remoteAddress: string) => boolean;
  readonly gauge: { readonly name: string; readonly help: string };
};

export function composeConnections(
  { face, limits, isExempt, gauge }: ConnectionOptions,
  { log, metrics, now }: Parts,
): Connections {
  // A counter that does not start at 0 hides its first event.
  for (const reason of CONNECTION_ENDS) metrics.connectionEnds.inc({ face, reason }, 0);
  const observe = (reason: ConnectionEnd) => metrics.connectionEnds.inc({ face, reason });
  const connections = createConnections({ name: face, limits, isExempt, now, log, observe });
  metrics.gauge(gauge.name, gauge.help, connections.open);
  return connections;
}

export function composeUnparsed(face: string, { log, metrics, started }: Parts): Unparsed {
  for (const kind of UNPARSED_KINDS) metrics.unparsed.inc({ face, kind }, 0);
  const observe = (kind: UnparsedKind) => metrics.unparsed.inc({ face, kind });
  const unparsed = createUnparsed({ name: face, log, observe });
  started.defer(unparsed.close);
  return unparsed;
}
