// The kinds of events that an account can choose to hear of, in the order in which a job has them.

import type { EventKind } from '../webhooks/deliverer.ts';

export const EVENT_KINDS = ['progress', 'completed', 'failed'] as const satisfies readonly EventKind[];
