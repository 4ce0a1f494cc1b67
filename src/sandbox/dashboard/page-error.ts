// Requests that end with a page that says what is wrong and what to do.

import type { Content } from '../../web/index.ts';

export class PageError extends Error {
  override readonly name = 'PageError';
  readonly status: number;
  readonly title: string;
  /** What to do. */
  readonly advice: Content;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: number,
    title: string,
    advice: Content,
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(title);
    this.status = status;
    this.title = title;
    this.advice = advice;
    this.headers = headers;
  }
}

export function nothingHere(what: string): PageError {
  return new PageError(
    404,
    `There is no such ${what}`,
    'It may have been deleted, or belong to another account.',
  );
}
