// The connections of one server, with their metrics.

import type { Parts } from '../parts.ts';
import {
  CONNECTION_ENDS,
  type ConnectionEnd,
  type ConnectionLimits,
  type Connections,
  createConnections,
} from './connections.ts';

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
