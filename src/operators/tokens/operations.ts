// The API's operations on tokens: list, make and revoke. For admins whose token is not limited to some sources. A new
// token's value is in the answer that makes it and nowhere else.

import { z } from 'zod';
import type { DatabaseConnection } from '../../ledger/index.ts';
import { canBeLimited } from '../kernel/access/roles.ts';
import type { Environment } from '../kernel/access/token-value.ts';
import { listTokens, makeToken, revokeToken, shownToken } from '../kernel/access/tokens.queries.ts';
import {
  ApiError,
  defineAction,
  defineRead,
  notFound,
  type Operation,
} from '../kernel/operation/operation.ts';
import { MAX_TOKENS, NewToken, Token, TokenOrder, TokenPage } from './contract.ts';

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
    needsAllSources: true,
    answers: {
      200: {
        description: `At most ${MAX_TOKENS}, on one page.`,
        schema: TokenPage,
      },
    },
    run: async () => {
      const tokens = await listTokens(db);
      return { status: 200, body: { items: tokens.map(shownToken), next_cursor: null } };
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
      'The value is shown in this answer alone. A request that is repeated under its Idempotency-Key gets the token again, without the value: revoke that one and make another.',
    role: 'admin',
    needsAllSources: true,
    body: TokenOrder,
    shownOnce: ['value'],
    answers: { 201: { description: 'The token with its value.', schema: NewToken } },
    run: async ({ body }, { caller, trx, record }) => {
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
      return { status: 201, body: { ...shownToken(token), value } };
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
    needsAllSources: true,
    params: z.strictObject({ id: z.string().max(100) }),
    answers: { 200: { description: 'The token, revoked now or before.', schema: Token } },
    run: async ({ params }, { trx, record }) => {
      const revoked = await revokeToken(trx, params.id);
      if (revoked === undefined) throw notFound('token');
      if (revoked.changed) {
        await record({
          action: 'token.revoke',
          subject: params.id,
          detail: { name: revoked.token.name },
        });
      }
      return { status: 200, body: shownToken(revoked.token) };
    },
  });
}
