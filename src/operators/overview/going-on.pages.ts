// What goes on, as the overview says it: open incidents, and conditions that are so and did not last long enough to be one. And what
// was: the incidents that ended last.

import { type Content, type Html, html } from '../../web/index.ts';
import { ConditionList, type ConditionNow, type Incident } from '../incidents/contract.ts';
import { INCIDENT_CELLS } from '../incidents/pages.ts';
import { placeOf, runbook } from '../incidents/places.pages.ts';
import type { Visit } from '../kernel/console/page.ts';
import { pageColumns } from '../kernel/list/looks.pages.ts';
import { exact } from '../kernel/view/numbers.ts';
import { renderTable } from '../kernel/view/table.ts';
import { seen } from '../kernel/view/texts.ts';
import { span, utc } from '../kernel/view/times.ts';

export type GoingOn = Pick<ConditionNow, 'name' | 'subject' | 'severity' | 'summary'> & {
  /** Null: it did not last long enough so far. */
  readonly incident: Incident | null;
};

export type Incidents = {
  readonly goingOn: readonly GoingOn[];
  /** That ended, or are not so at this moment and end if it stays so. */
  readonly was: readonly Incident[];
};

/** Of one kind; the rest are in the list. */
const SHOWN_MAX = 10;
const OPEN_MAX = 50;
const ENDED_MAX = 5;
const ENDED_DAYS = 7;
const DAY_MS = 24 * 60 * 60 * 1_000;

export async function readIncidents({ calls }: Visit): Promise<Incidents> {
  const from = new Date(Date.now() - ENDED_DAYS * DAY_MS).toISOString();
  const [open, ended, conditions] = await Promise.all([
    calls.list('incidents', { state: 'open', limit: OPEN_MAX }),
    calls.list('incidents', { state: 'ended', from, limit: ENDED_MAX }),
    calls.may('listConditions') ? calls.call('listConditions', ConditionList) : { items: [] },
  ]);
  const isOver = (incident: Incident) => conditions.items.find(isOf(incident))?.is_so === false;
  const beginning = conditions.items.filter(
    (condition) => condition.is_so === true && !open.items.some((incident) => isOf(incident)(condition)),
  );
  return {
    goingOn: [
      ...open.items.filter((incident) => !isOver(incident)).map(toGoingOn),
      ...beginning.map((condition) => ({ ...condition, incident: null })),
    ],
    was: [...open.items.filter(isOver), ...ended.items],
  };
}

const isOf = (incident: Incident) => (condition: ConditionNow) =>
  condition.name === incident.condition && condition.subject === incident.subject;

const toGoingOn = (incident: Incident): GoingOn => ({ ...incident, name: incident.condition, incident });

/** Lines of this severity, each with the page where it is decided. */
export function renderGoingOn(
  all: readonly GoingOn[],
  severity: GoingOn['severity'],
  nowMs: number,
): Content[] {
  const lines = all.filter((each) => each.severity === severity);
  const shown = lines.slice(0, SHOWN_MAX).map((each) => {
    const { name, subject, summary, incident } = each;
    const href = placeOf(name, subject, incident?.began_at);
    const text = seen(summary);
    return html`${href === undefined ? text : html`<a href="${href}">${text}</a>`}${timesOf(each, nowMs)}`;
  });
  const rest = lines.length - shown.length;
  return rest === 0
    ? shown
    : [...shown, html`<a href="/console/incidents?state=open">${exact(rest)} more</a>`];
}

/** Behind what is said: since when, how much waited, and what to do. */
export function timesOf({ name, incident }: GoingOn, nowMs: number): Content {
  if (incident === null)
    return html` <span class="dim">Not an incident yet. ${runbook(name, 'What to do')}</span>`;
  const { began_at: begin, events_waited: waited, decided_by: by } = incident;
  const seconds = Math.max(0, (nowMs - Date.parse(begin)) / 1_000);
  return html` <span class="dim">Since ${utc(begin)}, for ${span(seconds)}${waited > 0 && `; up to ${exact(waited)} events waited`}${by.length > 0 && `; decided by ${seen(by.join(', '))}`}. ${runbook(name, 'What to do')}</span>`;
}

/** Without those who look a week later: nothing where nothing was. */
export function renderWhatWas({ was }: Incidents): Html | undefined {
  if (was.length === 0) return undefined;
  return html`<section><h2>Recent incidents</h2>
${renderTable({ caption: 'Recent incidents', columns: COLUMNS, items: was, empty: '' })}
<p><a href="/console/incidents">All incidents</a></p></section>`;
}

const COLUMNS = pageColumns('incidents', INCIDENT_CELLS);
