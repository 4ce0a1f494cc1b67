// The form below a list that exports it whole, with its filters or of one day.

import { type Content, html } from '../../../web/index.ts';
import { EXPORTED_LISTS, LISTS_WITH_BODIES, type ListName } from '../../lists.contract.ts';
import type { Calls } from '../console/calls.ts';
import { hiddenFields } from '../view/act.ts';
import type { Filters } from './filters.contract.ts';

export function renderExport(
  name: ListName,
  { filters, values, may }: { filters: Filters; values: Readonly<Record<string, string>>; may: Calls['may'] },
): Content {
  if (!EXPORTED_LISTS.some((one) => one === name) || !may('export')) return undefined;
  const hasBodies = LISTS_WITH_BODIES.some((one) => one === name);
  return html`<details class="export"><summary>Export</summary>
<form class="filters" method="post" action="/console/export" aria-label="Export">${hiddenFields({ list: name, ...values })}
<label>Format <select name="format"><option value="csv">CSV</option><option value="ndjson">NDJSON</option></select></label>
${'from' in filters && 'to' in filters && html`<label>Only of this day (UTC) <input type="date" name="day" autocomplete="off"></label>`}
${hasBodies && html`<label class="tick"><input type="checkbox" name="bodies" value="true"> with bodies</label>`}
<span class="actions"><button>Export all that match</button></span></form>
<p class="hint">All pages, with the filters above. It is a line of the operator log. A file whose download breaks off is not complete.</p></details>`;
}
