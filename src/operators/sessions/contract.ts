// Sessions of the console, and the code that begins one: what the API shows of them.

import { z } from 'zod';
import { timestamp } from '../kernel/list/fields.contract.ts';

/** All that are open, of all tokens, fit on one page; beyond it the newest are shown. */
export const SESSIONS_SHOWN_MAX = 200;

export const Session = z
  .object({
    id: z.string(),
    token_id: z.string(),
    token_name: z.string(),
    created_at: timestamp,
    last_used_at: timestamp.describe('Exact to a minute.'),
    expires_at: timestamp.describe(
      'Its end at the latest. It ends earlier when it is not used, or with its token.',
    ),
    remote_address: z.string().nullable().describe('The address that it was begun from.'),
  })
  .meta({ id: 'Session', description: 'A browser that is signed in to the console.' });

export const SessionPage = z
  .object({ items: z.array(Session).max(SESSIONS_SHOWN_MAX), next_cursor: z.null() })
  .meta({ id: 'SessionPage', description: 'The open sessions, on one page.' });

export const EndedSession = z
  .object({ id: z.string(), ended: z.literal(true) })
  .meta({ id: 'EndedSession', description: 'A session that has ended, now or before.' });

export const SignInCode = z
  .object({
    code: z.string().optional().meta({
      description:
        'Shown this once. Missing in the answer to a request that was repeated under its Idempotency-Key.',
    }),
    expires_at: timestamp,
  })
  .meta({
    id: 'SignInCode',
    description: 'Begins one session of the console with the rights of the token that made it.',
  });
