// Understands an authentic body (service interface 2.1 and 6.2): which job, which kind of event, and its normalized
// fields, or why it cannot be understood. Never throws, and never alters what it passes on: unknown fields
// keep every digit, and a body that breaks the schema is kept whole (`quarantined`).

import { decodeUtf8 } from './exact-json.ts';
import { understandAny } from './understand-any.ts';
import { understandUsual } from './understand-usual.ts';
import type { Understanding } from './understanding.ts';

export type { Understanding } from './understanding.ts';

declare const authentic: unique symbol;

/** Bytes whose signature matched, when they came or when they were recorded. Only they can become an event. */
export type AuthenticBody = Buffer & { readonly [authentic]: true };

/** What the body says. Pure, and total: no input makes it throw. */
export function understand(body: AuthenticBody): Understanding {
  const text = decodeUtf8(body);
  if (text === undefined) return { outcome: 'malformed', reason: 'the body is not UTF-8' };
  return understandUsual(text) ?? understandAny(text);
}
