// Where what makes an incident is decided, or can be looked at: a page of the console, and its section of the runbook.

import { CONDITIONS, type ConditionName } from '../../base/conditions.ts';
import { type Content, html } from '../../web/index.ts';
import { documentHref } from '../kernel/view/documents.ts';
import { address, sourceHref } from '../kernel/view/links.ts';

/** `beganAt`: since when, where that is known. */
type Place = (source: string | undefined, beganAt: string | undefined) => string;

const PENDING: Place = () => address('/console/outbox', { state: 'pending' });
const OVERVIEW: Place = () => '/console';
const SOURCE: Place = (source) => (source === undefined ? '/console/sources' : sourceHref(source));

const PLACES: Readonly<Record<ConditionName, Place>> = {
  'outbox-lag': PENDING,
  'broker-away': PENDING,
  'no-leader': OVERVIEW,
  'postgres-away': OVERVIEW,
  'disk-full': OVERVIEW,
  'partitions-missing': OVERVIEW,
  parked: () => address('/console/outbox', { state: 'parked' }),
  returned: () => address('/console/outbox', { state: 'returned' }),
  'source-silent': SOURCE,
  quarantine: () => '/console/quarantine',
  conflicts: (_source, from) => address('/console/deliveries', { outcome: 'conflict', from }),
  'stuck-jobs': () => address('/console/jobs', { state: 'stuck' }),
  'unauthorized-storm': (source, from) =>
    address('/console/deliveries', { outcome: 'unauthorized', source, from }),
  'secret-overdue': SOURCE,
  'starved-pool': OVERVIEW,
  'connections-dropped': OVERVIEW,
  'log-dropped': OVERVIEW,
};

const isKnown = (name: string): name is ConditionName => Object.hasOwn(CONDITIONS, name);

/** A newer replica may have written one that this one does not know: it leads nowhere. */
export function placeOf(name: string, subject: string | null, beganAt?: string): string | undefined {
  return isKnown(name) ? PLACES[name](subject ?? undefined, beganAt) : undefined;
}

/** A newer replica may have written one that this runbook has no section for: then the runbook itself. */
export const runbook = (name: string, text: string): Content =>
  html`<a href="${documentHref('runbook', isKnown(name) ? name : undefined)}">${text}</a>`;
