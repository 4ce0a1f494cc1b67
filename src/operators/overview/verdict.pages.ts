// Whether all is well: what does not work, what needs a decision, and what somebody should look at. It stands first on the overview,
// each line with the page where it is decided. What has a line of its own here gets the times of its incident, and no second line.

import type { ConditionName } from '../../base/conditions.ts';
import type { Readiness } from '../../http/index.ts';
import { type Content, type Html, html } from '../../web/index.ts';
import { documentHref } from '../kernel/view/documents.ts';
import { capped, counted } from '../kernel/view/numbers.ts';
import { ago, span, utc } from '../kernel/view/times.ts';
import type { DatabaseLoss, Replica } from '../replicas/contract.ts';
import type { Entry } from '../outbox/contract.ts';
import { whyItWaits } from '../outbox/entries.pages.ts';
import { type GoingOn, renderGoingOn, timesOf } from './going-on.pages.ts';

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
  /** The first in the order of the outbox: it says why it waits. */
  readonly oldestPending: Entry | undefined;
  readonly readiness: Readiness;
  readonly replicas: readonly Replica[];
  /** Of the last days. */
  readonly loss: DatabaseLoss | null;
  readonly goingOn: readonly GoingOn[];
  /** Whether the reader may do what is advised. Who may not is told who may. */
  readonly mayDecide: boolean;
  readonly nowMs: number;
};

/** Of what is said here: which condition it is, if it is one. */
type Line = { readonly of?: ConditionName; readonly text: Html | string };

/** The relay takes a fraction of a second; what waits for so long does not get through. */
const OLD_MS = 60_000;

export function renderVerdict(situation: Situation): Html {
  const { goingOn, nowMs } = situation;
  const [decisions, troubles] = [decisionsOf(situation), troublesOf(situation)];
  const said = [...decisions, ...troubles].map((line) => line.of);
  const unsaid = goingOn.filter(({ name }) => !said.some((one) => one === name));
  const withTimes = ({ of, text }: Line): Content => {
    const incident = goingOn.find(({ name }) => name === of);
    return html`${text}${incident !== undefined && timesOf(incident, nowMs)}`;
  };
  const shown = (severity: GoingOn['severity']) => renderGoingOn(unsaid, severity, nowMs);
  const boxes = [
    box('bad', 'Something is not working.', [...troubles.map(withTimes), ...shown('critical')]),
    box('warn', 'Needs a decision.', decisions.map(withTimes)),
    box('warn', 'Needs attention.', shown('warning')),
  ].filter((each) => each !== undefined);
  if (boxes.length > 0) return html`${boxes}`;
  return html`<div class="notice verdict good"><p><strong class="state good">All is well.</strong> Nothing needs a decision.</p></div>`;
}

const box = (meaning: 'bad' | 'warn', heading: string, lines: readonly Content[]): Html | undefined =>
  lines.length === 0
    ? undefined
    : html`<div class="notice verdict ${meaning}"><p><strong class="state ${meaning}">${heading}</strong></p><ul>${lines.map((line) => html`<li>${line}</li>`)}</ul></div>\n`;

const entry = (
  of: ConditionName | undefined,
  { href, what, why, count: { count } }: { href: string; what: string; why: string; count: Count },
): Line[] => (count > 0 ? [{ ...(of && { of }), text: html`<a href="${href}">${what}</a>: ${why}` }] : []);

function decisionsOf(situation: Situation): Line[] {
  const { quarantined, returned, parked, pausedReplays, stuck, mayDecide } = situation;
  const advice = mayDecide ? ADVICE.toOperators : ADVICE.toOthers;
  const deliveries = quarantined.isExact && quarantined.count === 1 ? 'delivery' : 'deliveries';
  return [
    ...entry('quarantine', {
      href: '/console/quarantine',
      what: `${capped(quarantined.count, quarantined.isExact)} ${deliveries} in quarantine`,
      why: `authentic, and not understood. ${advice.quarantined}`,
      count: quarantined,
    }),
    ...entry('returned', {
      href: '/console/outbox?state=returned',
      what: `${counted(returned.count, 'event', returned.isExact)} returned`,
      why: `no queue was bound for them. ${advice.returned}`,
      count: returned,
    }),
    ...entry('parked', {
      href: '/console/outbox?state=parked',
      what: `${counted(parked.count, 'event', parked.isExact)} parked`,
      why: `the relay gave up, or an operator parked them. ${advice.parked}`,
      count: parked,
    }),
    ...entry(undefined, {
      href: '/console/replays?state=paused',
      what: `${counted(pausedReplays.count, 'replay', pausedReplays.isExact)} paused`,
      why: `something stopped it. ${advice.paused}`,
      count: pausedReplays,
    }),
    ...entry('stuck-jobs', {
      href: '/console/jobs?state=stuck',
      what: `${counted(stuck.count, 'job', stuck.isExact)} stuck`,
      why: 'no end reported for more than an hour. Ask the sender.',
      count: stuck,
    }),
  ];
}

const ADVICE = {
  toOperators: {
    quarantined: 'Release or discard them.',
    returned: 'Bind one, then send them again.',
    parked: 'Look at the error, then send them again or discard them.',
    paused: 'Its page says what; resume or cancel it there.',
  },
  toOthers: {
    quarantined: 'An operator can release or discard them.',
    returned: 'When one is bound, an operator can send them again.',
    parked: 'An operator can send them again or discard them.',
    paused: 'Its page says what; an operator can resume or cancel it.',
  },
} as const;

const BROKER = {
  connected: undefined,
  disconnected: 'RabbitMQ cannot be reached. Events wait in the outbox; nothing is lost.',
  blocked: 'RabbitMQ takes no events: it is short of memory or disk. Events wait in the outbox.',
} as const;

/** The cause, with a link to it: what is pending waits for RabbitMQ, for an earlier event of its job, or after an error. */
function causeOf({ readiness, oldestPending }: Situation): Content {
  if (readiness.rabbitmq !== 'connected') return ': RabbitMQ does not take it';
  if (!oldestPending || (!oldestPending.waits_behind && oldestPending.last_error === null)) return undefined;
  return html`: ${oldestPending.waits_behind && 'it '}${whyItWaits(oldestPending)}`;
}

function troublesOf(situation: Situation): Line[] {
  const { readiness, replicas, loss, oldestPendingAt, nowMs } = situation;
  const late = replicas.filter((replica) => replica.is_late);
  const alive = replicas.filter((replica) => !replica.is_late);
  const isOld = oldestPendingAt !== null && nowMs - Date.parse(oldestPendingAt) > OLD_MS;
  // While RabbitMQ is away nobody can lead: that is no second fault.
  const noLeader =
    readiness.rabbitmq === 'connected' && alive.length > 0 && !alive.some(({ leads }) => leads);
  const lines: readonly (readonly [
    of: ConditionName | undefined,
    text: Html | string | undefined | false,
  ])[] = [
    [
      'postgres-away',
      readiness.postgres === 'down' && 'Postgres takes no deliveries: senders are answered with 503.',
    ],
    [
      undefined,
      loss !== null &&
        html`The database went back in time (<a href="${documentHref('backup')}">what to do</a>). What was accepted ${loss.kept_until !== null && html`after ${utc(loss.kept_until)} and `}until ${utc(loss.acknowledged_at)} is gone, or a part of it. <a href="/console/operator-log?action=database.loss">How it was found</a>.`,
    ],
    ['broker-away', BROKER[readiness.rabbitmq]],
    [undefined, readiness.queue === 'full' && 'The write queue is full: senders are answered with 503.'],
    [
      'connections-dropped',
      readiness.connections === 'full' && 'Senders take all connections: new ones are refused.',
    ],
    ['no-leader', noLeader && 'No replica leads the relay: nothing is published.'],
    [
      'outbox-lag',
      isOld &&
        html`<a href="/console/outbox?state=pending">The oldest event</a> has waited for ${span((nowMs - Date.parse(oldestPendingAt)) / 1_000)}${causeOf(situation)}.`,
    ],
    ...late.map(
      ({ host, seen_at: at }) =>
        [undefined, `The replica on ${host} is silent: last heard ${ago(at, nowMs)}.`] as const,
    ),
  ];
  return lines.flatMap(([of, text]) =>
    text === undefined || text === false ? [] : [{ ...(of && { of }), text }],
  );
}
