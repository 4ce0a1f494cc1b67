// The list of incidents: what is going on, and what was. Each leads to where it is decided, and to its section of the runbook.

import { html } from '../../web/index.ts';
import { listPage } from '../kernel/list/list.pages.ts';
import type { Cells } from '../kernel/list/looks.pages.ts';
import { sourceHref } from '../kernel/view/links.ts';
import type { Column } from '../kernel/view/table.ts';
import { idLink, seen } from '../kernel/view/texts.ts';
import type { Incident } from './contract.ts';
import { placeOf, runbook } from './places.pages.ts';

export const INCIDENT_CELLS: Cells<'incidents'> = {
  condition: {
    cell: ({ condition, subject, began_at: at }) => {
      const href = placeOf(condition, subject, at);
      return href === undefined ? seen(condition) : html`<a href="${href}">${condition}</a>`;
    },
    form: 'brief',
  },
  subject: ({ subject }) => subject !== null && idLink(sourceHref(subject), subject),
  summary: { cell: ({ summary }) => seen(summary), form: 'long' },
};

const RUNBOOK: Column<Incident> = {
  head: 'What to do',
  cell: ({ condition }) => runbook(condition, `runbook: ${condition}`),
  form: 'long',
};

export const incidents = listPage({
  name: 'incidents',
  title: 'Incidents',
  first: ['state', 'condition', 'severity', 'source', 'from', 'to'],
  cells: INCIDENT_CELLS,
  withColumns: (own) => [...own, RUNBOOK],
  empty: html`There have been none. What an operator has to know about, such as events that are not being published, is recorded here from start to end.`,
});
