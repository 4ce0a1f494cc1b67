// The API's operations on tokens: list, make and revoke. For admins whose token is not limited to some sources. A new
// token's value is in the answer that makes it and nowhere else.

import { z } from 'zod';
import { tokenName } from '../access/token-name.ts';
import { canBeLimited, TOKEN_ROLES } from '../access/roles.ts';
import { ENVIRONMENTS, type Environment } from '../access/token-value.ts';
import { listTokens, MAX_TOKENS, makeToken, revokeToken, type Token } from '../access/tokens.ts';
import type { DatabaseConnection } from '../../ledger/index.ts';
import { source, time } from '../contract/filters.ts';
import {
  ApiError,
  type Caller,
  defineAction,
  defineRead,
  forbidden,
  notFound,
  type Operation,
} from './operation.ts';
import { timestamp } from '../contract/items.ts';

const MAX_SOURCES = 100;

const tokenSchema = z
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
  .meta({ id: 'Token', description: 'What opens this API. Its value is not kept, only a hash of it.' });

const newTokenSchema = tokenSchema
  .extend({
    value: z.string().optional().meta({
      description:
        'Shown this once. Missing in the answer to a request that was repeated under its Idempotency-Key.',
    }),
  })
  .meta({ id: 'NewToken', description: 'A token with its value.' });

const order = z
  .strictObject({
    name: tokenName,
    role: z.enum(TOKEN_ROLES),
    sources: z
      .array(source)
      .min(1)
      .max(MAX_SOURCES)
      .optional()
      .describe('Limits it to these. One that is named twice counts once.'),
    expires_at: time.optional().describe('In the future. Where not given it does not expire.'),
  })
  .meta({ id: 'TokenOrder', description: 'What the token is to be.' });

const tokenPage = z
  .object({ items: z.array(tokenSchema), next_cursor: z.null() })
  .meta({ id: 'TokenPage', description: `All tokens: at most ${MAX_TOKENS}, on one page.` });

export function createTokenOperations(deps: {
  connection: Pick<DatabaseConnection, 'db'>;
  environment: Environment;
}): readonly Operation[] {
  const { connection, environment } = deps;
  return [listOperation(connection), createOperation(environment), revokeOperation()];
}

function listOperation({ db }: Pick<DatabaseConnection, 'db'>): Operation {
  return defineRead({
    id: 'listTokens',
    path: '/tokens',
    tag: 'Tokens',
    summary: 'All tokens, newest first',
    role: 'admin',
    answers: {
      200: {
        description: `At most ${MAX_TOKENS}, on one page.`,
        schema: tokenPage,
      },
    },
    run: async (_input, { caller }) => {
      requireUnlimited(caller);
      const tokens = await listTokens(db);
      return { status: 200, body: { items: tokens.map(toAnswer), next_cursor: null } };
    },
  });
}

function createOperation(environment: Environment): Operation {
  return defineAction({
    id: 'createToken',
    path: '/tokens',
    tag: 'Tokens',
    summary: 'Make a token',
    description:
      'The value is shown this once. A request that is repeated under its Idempotency-Key gets the token again, without the value: revoke that one and make another.',
    role: 'admin',
    body: order,
    shownOnce: ['value'],
    answers: { 201: { description: 'The token with its value.', schema: newTokenSchema } },
    run: async ({ body }, { caller, trx, record }) => {
      requireUnlimited(caller);
      if (body.sources !== undefined && !canBeLimited(body.role)) {
        throw new ApiError(
          400,
          'invalid_request',
          `sources: metrics are of all, so a ${body.role} has no limit`,
        );
      }
      const expiresAt = body.expires_at === undefined ? null : new Date(body.expires_at);
      if (expiresAt !== null && !(expiresAt.getTime() > Date.now())) {
        throw new ApiError(400, 'invalid_request', 'expires_at: must be in the future');
      }
      const made = await makeToken(trx, {
        name: body.name,
        role: body.role,
        environment,
        sources: body.sources ?? null,
        expiresAt,
        createdBy: caller.name,
      });
      if (made === 'full') {
        throw new ApiError(409, 'too_many_tokens', `there are ${MAX_TOKENS} tokens: revoke some first`);
      }
      const { token, value } = made;
      await record({
        action: 'token.create',
        subject: token.id,
        detail: { name: token.name, role: token.role, sources: token.sources, expires_at: token.expiresAt },
      });
      return { status: 201, body: { ...toAnswer(token), value } };
    },
  });
}

function revokeOperation(): Operation {
  return defineAction({
    id: 'revokeToken',
    path: '/tokens/{id}/revoke',
    tag: 'Tokens',
    summary: 'Revoke a token for good',
    role: 'admin',
    params: z.strictObject({ id: z.string().max(100) }),
    answers: { 200: { description: 'The token, revoked now or before.', schema: tokenSchema } },
    run: async ({ params }, { caller, trx, record }) => {
      requireUnlimited(caller);
      const revoked = await revokeToken(trx, params.id);
      if (revoked === undefined) throw notFound('token');
      if (revoked.changed) {
        await record({
          action: 'token.revoke',
          subject: params.id,
          detail: { name: revoked.token.name },
        });
      }
      return { status: 200, body: toAnswer(revoked.token) };
    },
  });
}

/** A limited token could otherwise make one without limit. @throws ApiError 403 */
function requireUnlimited({ sources }: Caller): void {
  if (sources !== null) throw forbidden();
}

function toAnswer(token: Token) {
  return {
    id: token.id,
    name: token.name,
    environment: token.environment,
    role: token.role,
    sources: token.sources,
    created_at: token.createdAt.toISOString(),
    created_by: token.createdBy,
    expires_at: token.expiresAt?.toISOString() ?? null,
    last_used_at: token.lastUsedAt?.toISOString() ?? null,
    revoked_at: token.revokedAt?.toISOString() ?? null,
  };
}
