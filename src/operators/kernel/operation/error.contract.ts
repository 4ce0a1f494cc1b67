// The form of every error answer.

import { z } from 'zod';

export const ErrorAnswer = z
  .object({
    error: z.string().meta({ description: 'A short code that programs can rely on.' }),
    message: z.string().meta({ description: 'For people; may change.' }),
  })
  .meta({ id: 'Error', description: 'Every answer that is no success.' });
