// A job's story as a drawing: one lane each for deliveries, events, the bus and operators, time from top to bottom, a line from
// a cause to what it led to, and a break where nothing happened for long.

import { type Content, html } from '../../web/index.ts';
import { duration, timeOfDay, utc } from '../kernel/view/times.ts';
import type { StoryItem } from './contract.ts';
import { describeStep, type Step } from './step.pages.ts';

/** A body that was asked for, and the delivery that it belongs to. */
export type Shown = { readonly of: string; readonly content: Content };

export type TimeLineOptions = {
  readonly job: { readonly source: string; readonly job_id: string; readonly cursor: string | undefined };
  readonly mayRead: boolean;
  readonly mayDecide: boolean;
  readonly isFirstPage: boolean;
  readonly body?: Shown;
};

/** Shorter ones stand beside the time alone. */
const LONG_MS = 60_000;

export function renderTimeLine(items: readonly StoryItem[], options: TimeLineOptions): Content {
  if (items.length === 0) return html`<p class="empty">There is nothing more.</p>`;
  return html`<p class="lanes hint" aria-hidden="true"><span class="lane-delivery">delivery</span><span class="lane-event">event</span><span class="lane-bus">bus</span><span class="lane-operator">operator</span></p>
<ol class="story">
${items.map((item, index) => renderStep(item, { step: describeStep(item, options), before: items[index - 1], ...options }))}</ol>`;
}

function renderStep(
  item: StoryItem,
  { step, before, isFirstPage }: TimeLineOptions & { step: Step; before: StoryItem | undefined },
): Content {
  const { at, after_ms: afterMs } = item;
  const isFirst = isFirstPage && afterMs === null;
  // What waits has the time of this reading.
  const isNow = item.what === 'waiting';
  const isLong = !isNow && afterMs !== null && afterMs >= LONG_MS;
  const gap = isFirst || isLong || isNow ? undefined : duration(afterMs);
  // The date stands once above steps of the same day that follow each other closely.
  const time = gap !== undefined && before?.at.slice(0, 10) === at.slice(0, 10) ? timeOfDay(at) : utc(at);
  return html`${isLong && html`<li class="gap"><span>${duration(afterMs)} later</span></li>\n`}<li class="step lane-${step.lane}${step.isEffect && ' effect'}"${step.anchor !== undefined && html` id="${step.anchor}"`}>
<div class="step-head"><strong>${step.what}</strong> ${step.state} <span class="when">${isNow ? 'now' : time}${gap !== undefined && html` <span class="dim">+${gap}</span>`}</span></div>
<div class="step-text">${step.text}</div>
${step.below}</li>
`;
}
