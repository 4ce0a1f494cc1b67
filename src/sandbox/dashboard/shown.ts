// How values look on the pages: times in UTC, exact numbers, states with a word, and what others wrote as inert text.

import { type Content, type Html, html } from '../../web/index.ts';
import { maskInvisible } from '../../base/text/invisible-characters.ts';
import type { TokenState } from '../accounts/tokens.ts';
import type { JobStatus } from '../jobs/job.ts';
import type { Attempt, NotificationState } from '../webhooks/notifications.ts';
import { newFormKey } from './once.ts';
import { DASHBOARD_PATH } from './site.ts';

/** Longer than any URL that is taken. */
const FOREIGN_MAX_LENGTH = 2_500;
/** Longer than any name or error code of ours. */
export const CELL_MAX_LENGTH = 120;

/** On one line, without characters that hide or turn the text around it. */
export function foreign(text: string, maxLength = FOREIGN_MAX_LENGTH): string {
  const kept =
    text.length > maxLength ? `${text.slice(0, maxLength)}… (${number(text.length)} characters)` : text;
  return maskInvisible(kept);
}

/** The same as an element that keeps its own direction of writing. */
export function code(text: string, maxLength = FOREIGN_MAX_LENGTH): Html {
  return html`<bdi class="id">${foreign(text, maxLength)}</bdi>`;
}

/** All digits, in groups. */
export function number(value: number): string {
  return value.toLocaleString('en-US', { maximumFractionDigits: 3 });
}

/** ISO 8601 in UTC, to the second. The script adds the local time as a title. */
export function time(iso: string | null, otherwise = '–'): Content {
  if (iso === null) return otherwise;
  return html`<time datetime="${iso}">${iso.slice(0, 19).replace('T', ' ')} UTC</time>`;
}

export function seconds(ms: number): string {
  return `${number(ms / 1_000)} s`;
}

/** For people who wait: rounded up to seconds, or to minutes. */
export function wait(ms: number): string {
  return ms > 120_000 ? `${Math.ceil(ms / 60_000)} min` : `${Math.ceil(ms / 1_000)} s`;
}

const JOB_LOOKS = { processing: 'idle', completed: 'good', failed: 'bad' } as const;
const DELIVERY_LOOKS = { pending: 'idle', delivered: 'good', given_up: 'bad' } as const;
const TOKEN_LOOKS = { valid: 'good', expired: 'idle', revoked: 'bad' } as const;

export function jobState(status: JobStatus): Html {
  return state(JOB_LOOKS[status], status);
}

export function deliveryState(found: NotificationState): Html {
  return state(DELIVERY_LOOKS[found], found.replace('_', ' '));
}

export function tokenStateShown(found: TokenState): Html {
  return state(TOKEN_LOOKS[found], found);
}

/** What the receiver said. */
export function answer({ httpStatus, error }: Attempt): Html {
  const isGood = error === null && httpStatus !== null && httpStatus >= 200 && httpStatus < 300;
  const words = [
    httpStatus === null ? undefined : String(httpStatus),
    error === null ? undefined : foreign(error, CELL_MAX_LENGTH),
  ];
  return state(isGood ? 'good' : 'bad', words.filter((word) => word !== undefined).join(', '));
}

function state(look: string, word: string): Html {
  return html`<span class="state ${look}">${word}</span>`;
}

/** A form that a press sends, with the key that lets it act once. `action`: below the dashboard. */
export function form(action: string, content: Content, look = 'form'): Html {
  return html`<form class="${look}" method="post" action="${DASHBOARD_PATH}${action}">
<input type="hidden" name="key" value="${newFormKey()}">
${content}
</form>`;
}

export function faultList(faults: readonly string[]): Content {
  if (faults.length === 0) return undefined;
  return html`<div class="notice bad" role="alert"><p><strong>Nothing was changed.</strong></p>
<ul>${faults.map((fault) => html`<li>${foreign(fault)}</li>`)}</ul></div>`;
}

export function notice(text: Content): Html {
  return html`<div class="notice good" role="status"><p>${text}</p></div>`;
}

/** Of a list that goes on. */
export function nextPage(address: string | undefined, isFirst: boolean, first: string): Content {
  if (address === undefined && isFirst) return undefined;
  return html`<p class="actions">${!isFirst && html`<a class="button" href="${first}">Newest</a>`}
${address !== undefined && html`<a class="button" href="${address}">Older</a>`}</p>`;
}
