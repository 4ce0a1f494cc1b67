// Incidents: what an operator had to know of, from when to when; and the conditions that make incidents, as they are now. The fields that
// the API shows, the list's filters and columns, and the answer to a test of the channels.

import { z } from 'zod';
import { CONDITIONS, type ConditionName } from '../../base/conditions.ts';
import { columnsOf } from '../kernel/list/columns.contract.ts';
import { timestamp } from '../kernel/list/fields.contract.ts';
import { filter, range, source, sourceName, stateFilter, time } from '../kernel/list/filters.contract.ts';

export const CONDITION_NAMES = Object.keys(CONDITIONS) as ConditionName[];

const severity = z.enum(['critical', 'warning']);
/** Any text: while versions change, a newer replica may have written one that this one does not know. */
const conditionName = z.string().describe('By its name, which is its place in `docs/runbook.md`, too.');
const subject = z.string().nullable().describe('The source that it is of; null for what concerns all.');

export const Incident = z
  .object({
    id: z.uuid(),
    condition: conditionName,
    subject,
    severity,
    state: z.enum(['open', 'ended']),
    summary: z.string().describe('One sentence.'),
    began_at: timestamp.describe('When it was first seen. It had to last until it became an incident.'),
    ended_at: timestamp.nullable().describe('When it was last so; null while it goes on.'),
    events_waited: z.int().min(0).describe('The most events that waited to be published at one time.'),
    decided_by: z.array(z.string()).describe('Who decided meanwhile about what waited.'),
  })
  .meta({ id: 'Incident', description: 'What an operator has, or had, to know of.' });

const conditionFilter = filter(z.enum(CONDITION_NAMES), {
  label: 'Condition',
  option: 'condition',
  takes: 'NAME',
  help: 'by its name: outbox-lag, broker-away, returned, quarantine, …',
});

export const incidentFilters = {
  state: stateFilter(z.enum(['open', 'ended'])),
  condition: conditionFilter,
  severity: filter(severity, { label: 'Severity', option: 'severity', takes: 'SEVERITY' }),
  source: filter(sourceName, source.form),
  from: filter(time.describe('Those that went on at this time, or began later.'), range.from.form),
  to: filter(time.describe('Those that began before this time.'), range.to.form),
};

export type Incident = z.infer<typeof Incident>;

/** Until now, if it goes on. */
const lastedMs = ({ began_at: begin, ended_at: end }: Pick<Incident, 'began_at' | 'ended_at'>): number =>
  Math.max(0, (end === null ? Date.now() : Date.parse(end)) - Date.parse(begin));

export const incidentColumns = columnsOf<Incident>()({
  began_at: { head: 'began (UTC)', look: 'time' },
  state: { head: 'state', look: 'word' },
  severity: { head: 'severity', look: 'word', isMinor: true }, // the condition tells it, too
  condition: { head: 'condition', look: 'word' },
  subject: { head: 'source', look: 'name', isRare: true },
  ended_at: { head: 'ended (UTC)', look: 'time', isMinor: true },
  lasted: { head: 'lasted', look: 'duration', of: lastedMs },
  events_waited: { head: 'waited', look: 'count' },
  decided_by: {
    head: 'decided by',
    look: 'text',
    of: ({ decided_by: names }) => names.join(', ') || null,
    isRare: true,
  },
  summary: { head: 'what', look: 'text' },
});

export const ConditionNow = z
  .object({
    name: conditionName,
    subject,
    severity,
    is_so: z.boolean().nullable().describe('Null: it cannot be told now, since Postgres does not answer.'),
    summary: z.string().describe('One sentence.'),
    value: z
      .number()
      .nullable()
      .describe(
        'What was compared: seconds, or how many. Null where it cannot be told, or there is nothing to count.',
      ),
  })
  .meta({ id: 'Condition', description: 'What makes an incident if it lasts.' });

export const ConditionList = z.object({ items: z.array(ConditionNow) }).meta({
  id: 'ConditionList',
  description: 'All conditions; those of sources once for each source that they are so of.',
});

export type ConditionNow = z.infer<typeof ConditionNow>;

export const AlertTest = z
  .object({
    items: z.array(
      z.object({
        channel: z.string().describe('Its name in `ALERTS_FILE`.'),
        ok: z.boolean(),
        error: z.string().nullable().describe('Why the message was not taken; null if it was.'),
      }),
    ),
  })
  .meta({
    id: 'AlertTest',
    description: 'What came of a test message, for each channel that is configured.',
  });
