// What a token may be called, whoever makes it. Its name stands in lists, logs and answers as who did something, so it
// must show what it is: direction marks and other characters without a look of their own could pass it off as another.

import { z } from 'zod';
import { SEEN_ONLY, SEEN_ONLY_FAULT } from '../../unseen.ts';

const MAX_LENGTH = 100;
const LENGTH_FAULT = `must be 1 to ${MAX_LENGTH} characters`;

export const tokenName = z
  .string()
  .trim()
  .min(1, LENGTH_FAULT)
  .max(MAX_LENGTH, LENGTH_FAULT)
  .regex(SEEN_ONLY, SEEN_ONLY_FAULT);
