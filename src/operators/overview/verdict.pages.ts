// Whether all is well: what needs a decision, and what does not work. It stands first on the overview, each line with the page
// where it is decided.

import type { Readiness } from '../../http/index.ts';
import { type Html, html } from '../../web/index.ts';
import { capped, counted } from '../kernel/view/numbers.ts';
import { ago, span, utc } from '../kernel/view/times.ts';
import type { DatabaseLoss, Replica } from '../replicas/contract.ts';

export type Count = { readonly count: number; readonly isExact: boolean };

export type Situation = {
  readonly quarantined: Count;
  readonly returned: Count;
  readonly parked: Count;
  readonly stuck: Count;
  readonly pending: Count;
  /** Those that paused by themselves. */
  readonly pausedReplays: Count;
  readonly oldestPendingAt: string | null;
  readonly readiness: Readiness;
  readonly replicas: readonly Replica[];
  /** Of the last days. */
  readonly loss: DatabaseLoss | null;
  readonly nowMs: number;
};

/** The relay takes a fraction of a second; what waits for so long does not get through. */
const OLD_MS = 60_000;

export function renderVerdict(situation: Situation): Html {
  const decisions = decisionsOf(situation);
  const troubles = troublesOf(situation);
  if (decisions.length + troubles.length === 0) {
    return html`<p class="notice good"><strong class="state good">All is well.</strong> Nothing needs a decision.</p>`;
  }
  return html`${troubles.length > 0 && html`<div class="notice bad"><p><strong class="state bad">Something does not work.</strong></p><ul>${troubles.map((line) => html`<li>${line}</li>`)}</ul></div>`}
${decisions.length > 0 && html`<div class="notice warn"><p><strong class="state warn">Needs a decision.</strong></p><ul>${decisions.map((line) => html`<li>${line}</li>`)}</ul></div>`}`;
}

const entry = (href: string, what: string, why: string, { count }: Count) =>
  count > 0 ? [html`<a href="${href}">${what}</a>: ${why}`] : [];

function decisionsOf({ quarantined, returned, parked, pausedReplays, stuck }: Situation): Html[] {
  const deliveries = quarantined.isExact && quarantined.count === 1 ? 'delivery' : 'deliveries';
  return [
    ...entry(
      '/console/quarantine',
      `${capped(quarantined.count, quarantined.isExact)} ${deliveries} in quarantine`,
      'authentic, and not understood. Release or discard them.',
      quarantined,
    ),
    ...entry(
      '/console/outbox?state=returned',
      `${counted(returned.count, 'event', returned.isExact)} returned`,
      'no queue is bound for them. Bind one, then send them again.',
      returned,
    ),
    ...entry(
      '/console/outbox?state=parked',
      `${counted(parked.count, 'event', parked.isExact)} parked`,
      'all attempts failed. Look at the error, then send them again or discard them.',
      parked,
    ),
    ...entry(
      '/console/replays?state=paused',
      `${counted(pausedReplays.count, 'replay', pausedReplays.isExact)} paused`,
      'something stopped it. Its page says what; resume or cancel it there.',
      pausedReplays,
    ),
    ...entry(
      '/console/jobs?state=stuck',
      `${counted(stuck.count, 'job', stuck.isExact)} stuck`,
      'without an end for more than an hour. Ask the sender.',
      stuck,
    ),
  ];
}

const BROKER = {
  connected: undefined,
  disconnected: 'RabbitMQ cannot be reached. Events wait in the outbox; nothing is lost.',
  blocked: 'RabbitMQ takes no events: it is short of memory or disk. Events wait in the outbox.',
} as const;

function troublesOf({ readiness, replicas, loss, oldestPendingAt, nowMs }: Situation): (Html | string)[] {
  const late = replicas.filter((replica) => replica.is_late);
  const alive = replicas.filter((replica) => !replica.is_late);
  const isOld = oldestPendingAt !== null && nowMs - Date.parse(oldestPendingAt) > OLD_MS;
  return [
    readiness.postgres === 'down' && 'Postgres takes no deliveries: senders are answered with 503.',
    loss !== null &&
      html`The database went back in time (docs/backup.md). What was accepted ${loss.kept_until !== null && html`after ${utc(loss.kept_until)} and `}until ${utc(loss.acknowledged_at)} is gone, or a part of it. <a href="/console/operator-log?action=database.loss">How it was found</a>.`,
    BROKER[readiness.rabbitmq],
    readiness.queue === 'full' && 'The write queue is full: senders are answered with 503.',
    readiness.connections === 'full' && 'Senders take all connections: new ones are refused.',
    alive.length > 0 &&
      !alive.some(({ leads }) => leads) &&
      'No replica leads the relay: nothing is published.',
    isOld &&
      html`<a href="/console/outbox?state=pending">The oldest event</a> has waited for ${span((nowMs - Date.parse(oldestPendingAt)) / 1_000)}.`,
    ...late.map(({ host, seen_at: at }) => `The replica on ${host} is silent: last heard ${ago(at, nowMs)}.`),
  ].filter((line) => line !== undefined && line !== false);
}
