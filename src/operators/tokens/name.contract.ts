// The form of a token's name, for the API and the command line. Lists and logs show the name as the one who acted, so
// invisible characters and direction marks are rejected: with them one name could look like another.

import { z } from 'zod';
import { SEEN_ONLY, SEEN_ONLY_FAULT } from '../../base/text/invisible-characters.ts';
import { documented } from '../kernel/list/fields.contract.ts';

const MAX_LENGTH = 100;
const LENGTH_FAULT = `must be 1 to ${MAX_LENGTH} characters`;

export const tokenName = z
  .string()
  .trim()
  .min(1, LENGTH_FAULT)
  .max(MAX_LENGTH, LENGTH_FAULT)
  .regex(SEEN_ONLY, SEEN_ONLY_FAULT)
  .meta(documented({ pattern: String.raw`\S` }));
