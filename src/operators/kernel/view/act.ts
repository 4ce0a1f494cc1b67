// What forms that act have in common. Each carries an idempotency key, made when its page is rendered: a form that is sent twice
// acts once, and shows the same result twice.

import { randomUUID } from 'node:crypto';
import { type Content, html } from '../../../web/index.ts';
import { givenIn, type Query } from '../console/calls.ts';
import { ApiError } from '../operation/operation.ts';

/** A UUID; behind it the place among the forms of one action. */
const KEY_FORM = /^[0-9a-f-]{36}(?:_\d{1,6})?$/;

export const hiddenFields = (fields: Query): Content =>
  givenIn(fields).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`);

/** For a page that is rendered now. */
export const keyField = (key: string = randomUUID()): Content => hiddenFields({ key });

/** @throws ApiError 400 for a form without a key: it is no form of ours */
export function keyIn(form: URLSearchParams): string {
  const key = form.get('key') ?? '';
  if (!KEY_FORM.test(key)) {
    throw new ApiError(400, 'invalid_request', 'the form has no key: open its page again');
  }
  return key;
}

/** For the next form of an action that takes several: the same for each rendering of the result before. */
export function nextKey(key: string): string {
  const [begin = '', place = '1'] = key.split('_');
  return `${begin}_${Number(place) + 1}`;
}

/** Text fields of a form; empty ones are not there. */
export function textIn(form: URLSearchParams, name: string): string | undefined {
  const text = form.get(name)?.trim() ?? '';
  return text === '' ? undefined : text;
}
