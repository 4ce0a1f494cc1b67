// Forms that do something carry a key, made with the page. A form that comes a second time (a double click, a reload) does
// nothing more, and leads to what the first one did. Keys are in memory, and the oldest are forgotten first.

import { randomBytes } from 'node:crypto';
import { PageError } from './page-error.ts';

export type Once = {
  /**
   * Runs `act`, unless the form was sent before: then returns what it returned. `act` may throw; the form can then be sent
   * again. @throws PageError for a form without a key
   */
  readonly run: <T extends string>(scope: string, form: URLSearchParams, act: () => T) => Done<T>;
};

export type Done<T> = { readonly result: T; readonly isRepeated: boolean };

const KEY_BYTES = 16;
const KEY = /^[\w-]{22}$/;
const KEYS_MAX = 10_000;

export function newFormKey(): string {
  return randomBytes(KEY_BYTES).toString('base64url');
}

export function createOnce(): Once {
  const results = new Map<string, string>();

  function run<T extends string>(scope: string, form: URLSearchParams, act: () => T): Done<T> {
    const given = form.get('key') ?? '';
    if (!KEY.test(given))
      throw new PageError(400, 'The form has no key', 'Open the page again and send its form.');
    const key = `${scope} ${given}`;
    const before = results.get(key);
    if (before !== undefined) return { result: before as T, isRepeated: true };
    const result = act();
    results.set(key, result);
    const [oldest] = results.keys();
    if (results.size > KEYS_MAX && oldest !== undefined) results.delete(oldest);
    return { result, isRepeated: false };
  }

  return { run };
}
