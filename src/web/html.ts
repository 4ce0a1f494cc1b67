// HTML that is escaped unless it was made here. The types let only text, numbers and other HTML into a template, so what a
// sender wrote is always text.

import { html as hono } from 'hono/html';

declare const made: unique symbol;

/** Made by `html`. */
export type Html = { readonly [made]: true; readonly toString: () => string };

/** What a template takes. Text is escaped; `false`, `null` and `undefined` are nothing; an array is its items. */
export type Content = Html | string | number | boolean | null | undefined | readonly Content[];

/** Attribute values must stand in double quotes, and addresses in `href` must be our own. */
export function html(strings: TemplateStringsArray, ...values: readonly Content[]): Html {
  // Hono's result is a promise only if a value is one, which the types exclude.
  return hono(strings, ...values) as unknown as Html;
}
