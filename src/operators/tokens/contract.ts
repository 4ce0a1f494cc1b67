// Tokens: the fields that the API shows, and the body that orders one. Only the answer to that holds the token's value.

import { z } from 'zod';
import { documented, timestamp } from '../kernel/list/fields.contract.ts';
import { sourceName, time } from '../kernel/list/filters.contract.ts';
import { tokenName } from './name.contract.ts';

export const ENVIRONMENTS = ['live', 'test'] as const;
/** Each role may do what the roles before it may. */
export const ROLES = ['viewer', 'auditor', 'operator', 'admin'] as const;
export const TOKEN_ROLES = ['scraper', ...ROLES] as const;

/** More than people and programs that ask; a list of them stays one page. */
export const MAX_TOKENS = 1_000;
const MAX_SOURCES = 100;

export const Token = z
  .object({
    id: z.string(),
    name: z.string(),
    environment: z.enum(ENVIRONMENTS),
    role: z.enum(TOKEN_ROLES),
    sources: z
      .array(z.string())
      .nullable()
      .meta({ description: 'The sources it is limited to; null for all.' }),
    created_at: timestamp,
    created_by: z.string(),
    expires_at: timestamp.nullable(),
    last_used_at: timestamp.nullable().meta({ description: 'Noted at most once a minute.' }),
    revoked_at: timestamp.nullable(),
  })
  .meta({
    id: 'Token',
    description: 'Gives access to this API. The service stores only a hash of its value.',
  });

export const NewToken = Token.extend({
  value: z.string().optional().meta({
    description:
      'Shown this once. Missing in the answer to a request that was repeated under its Idempotency-Key.',
  }),
}).meta({ id: 'NewToken', description: 'A token with its value.' });

export const TokenOrder = z
  .strictObject({
    name: tokenName,
    role: z.enum(TOKEN_ROLES),
    sources: z
      .array(sourceName)
      .min(1)
      .max(MAX_SOURCES)
      .optional()
      .describe('Limits it to these. One that is named twice counts once.'),
    expires_at: time.optional().describe('In the future. Where not given it does not expire.'),
  })
  .meta({
    id: 'TokenOrder',
    description: 'What the token is to be. A scraper reads the metrics, which are of all sources.',
    ...documented({ not: { properties: { role: { const: 'scraper' } }, required: ['role', 'sources'] } }),
  });

export const TokenPage = z
  .object({ items: z.array(Token), next_cursor: z.null() })
  .meta({ id: 'TokenPage', description: `All tokens: at most ${MAX_TOKENS}, on one page.` });
