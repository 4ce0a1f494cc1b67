// What is shown instead of a page that could not be: what went wrong, in words for the operator.

import { FormError, html } from '../../../web/index.ts';
import { toApiError } from '../operation/answers.ts';
import { ApiError } from '../operation/operation.ts';
import { inWords } from './fault-words.ts';
import type { View } from './page.ts';

export const SESSION_ENDED: View = {
  title: 'Your session has ended',
  status: 401,
  body: html`<p>Nothing was done. <a href="/console/sign-in">Sign in</a> and try again.</p>`,
};

const TITLES: Readonly<Record<number, string>> = {
  400: 'The request is not valid',
  401: 'Your session has ended',
  403: 'You may not do this',
  404: 'There is nothing here',
  409: 'Its state does not allow this',
  429: 'Too many requests',
  503: 'The database did not answer in time',
};

/**
 * What is shown instead of a page.
 * @param tell of an error that nobody expected
 */
export function errorView(error: unknown, tell: (error: unknown) => void): View {
  if (error instanceof FormError)
    return {
      title: 'The form was not understood',
      status: error.status,
      body: html`<p>${error.message}</p>`,
    };
  const known = error instanceof URIError ? NOT_ENCODED : toApiError(error);
  if (known === undefined) {
    tell(error);
    return {
      title: 'Something went wrong on our side',
      status: 500,
      body: html`<p>The log has the details.</p>`,
    };
  }
  const { status, code } = known;
  return {
    title: TITLES[status] ?? 'This did not work',
    status,
    body: html`<p>${inWords(known)}</p><p class="dim">${code}</p>`,
  };
}

/** Express throws it for a part of a path, also to somebody who is not signed in. */
const NOT_ENCODED = new ApiError(400, 'invalid_request', 'the address is not encoded as addresses are');
