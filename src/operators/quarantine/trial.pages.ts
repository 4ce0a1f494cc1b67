// What the preview of a release says of its trial: how many can be released, and why the others cannot.

import { type Content, html } from '../../web/index.ts';
import type { Tried } from '../kernel/order/order.pages.ts';
import { counted, exact } from '../kernel/view/numbers.ts';
import { seen } from '../kernel/view/texts.ts';
import type { QuarantinePreview } from './contract.ts';

type Found = Pick<QuarantinePreview, 'matched' | 'matched_exactly' | 'trial'>;

export function triedIn({ matched, matched_exactly: isExact, trial }: Found): Tried | undefined {
  if (trial === undefined) return undefined;
  const { tried, releasable: possible } = trial;
  const isAll = isExact && tried === matched;
  return {
    possible,
    isAll,
    said:
      possible === tried && isAll
        ? undefined
        : html`<div class="notice warn">${sayTrial(trial, isAll)}</div>`,
  };
}

function sayTrial({ tried, releasable, reasons }: NonNullable<Found['trial']>, isAll: boolean): Content {
  const cannot = tried - releasable;
  const which = isAll ? '' : `Of the oldest ${counted(tried, 'delivery')}, `;
  const others = cannot - reasons.reduce((sum, { count }) => sum + count, 0);
  return html`<p>${which}${exact(releasable)} can be released with the present schemas, ${exact(cannot)} cannot${cannot > 0 && ':'}</p>
${cannot > 0 && html`<ul>${reasons.map(({ reason, count }) => html`<li>${exact(count)}: ${seen(reason)}</li>`)}${others > 0 && html`<li>${exact(others)}: other reasons</li>`}</ul>`}`;
}
