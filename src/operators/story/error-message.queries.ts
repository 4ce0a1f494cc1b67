// The error message of a failed job. It stands in the body alone: no list reads bodies, so only a job's story has it.

import type { Kysely } from 'kysely';
import { parseIfJson } from '../../base/json/json.ts';
import { maskInvisible } from '../../base/text/invisible-characters.ts';
import type { Database } from '../../ledger/index.ts';
import { findBody } from '../deliveries/queries.ts';
import { ERROR_MESSAGE_MAX_LENGTH } from './contract.ts';

/** On one line, without invisible characters and of bounded length. Null if the delivery's body is not kept, or has none. */
export async function readErrorMessage(db: Kysely<Database>, deliveryId: string): Promise<string | null> {
  const found = await findBody(db, deliveryId);
  if (!found?.body) return null;
  const content = parseIfJson(found.body.toString('utf8')) as { error_message?: unknown } | null | undefined;
  const text = content?.error_message;
  return typeof text === 'string' ? shown(text) : null;
}

/** One that is cut has exactly ERROR_MESSAGE_MAX_LENGTH characters, of which the last is `…`. */
function shown(message: string): string {
  const text = message.replaceAll(/\s+/g, ' ');
  // Twice the length at most, since a character may be of two code units.
  const characters = Array.from(text.slice(0, 2 * ERROR_MESSAGE_MAX_LENGTH + 1));
  const fits = characters.length <= ERROR_MESSAGE_MAX_LENGTH;
  const kept = fits ? characters : [...characters.slice(0, ERROR_MESSAGE_MAX_LENGTH - 1), '…'];
  return maskInvisible(kept.join(''));
}
