// The API's operations on sessions of the console: list and end them, and make a code that begins one.

import { z } from 'zod';
import type { DatabaseConnection } from '../../ledger/index.ts';
import { CODE_MINUTES, endSession, listSessions, makeCode } from '../kernel/access/sessions.queries.ts';
import {
  ApiError,
  defineAction,
  defineRead,
  notFound,
  type Operation,
} from '../kernel/operation/operation.ts';
import { EndedSession, SESSIONS_SHOWN_MAX, SessionPage, SignInCode } from './contract.ts';

export function createSessionOperations(deps: {
  connection: Pick<DatabaseConnection, 'db'>;
}): readonly Operation[] {
  return [listOperation(deps), endOperation(), codeOperation()];
}

function listOperation({ connection }: { connection: Pick<DatabaseConnection, 'db'> }): Operation {
  return defineRead({
    id: 'listSessions',
    path: '/sessions',
    tag: 'Sessions',
    summary: 'Open sessions of the console, newest first',
    role: 'admin',
    needsAllSources: true,
    answers: { 200: { description: `At most ${SESSIONS_SHOWN_MAX}, on one page.`, schema: SessionPage } },
    run: async () => {
      const sessions = await listSessions(connection.db, { limit: SESSIONS_SHOWN_MAX });
      const items = sessions.map((session) => ({
        id: session.id,
        token_id: session.tokenId,
        token_name: session.tokenName,
        created_at: session.createdAt.toISOString(),
        last_used_at: session.lastUsedAt.toISOString(),
        expires_at: session.expiresAt.toISOString(),
        remote_address: session.remoteAddress,
      }));
      return { status: 200, body: { items, next_cursor: null } };
    },
  });
}

function endOperation(): Operation {
  return defineAction({
    id: 'endSession',
    path: '/sessions/{id}/end',
    tag: 'Sessions',
    summary: 'End a session of the console',
    role: 'admin',
    needsAllSources: true,
    params: z.strictObject({ id: z.string().max(100) }),
    answers: { 200: { description: 'It has ended, now or before.', schema: EndedSession } },
    run: async ({ params: { id } }, { trx, record }) => {
      const ended = await endSession(trx, id);
      if (ended === undefined) throw notFound('session');
      if (ended.changed) await record({ action: 'session.end', subject: id });
      return { status: 200, body: { id, ended: true } };
    },
  });
}

function codeOperation(): Operation {
  return defineAction({
    id: 'createSignInCode',
    path: '/sign-in-codes',
    tag: 'Sessions',
    summary: 'Make a code that signs in to the console once',
    description: `For \`/console/sign-in?code=…\`, within ${CODE_MINUTES} minutes. The session has the rights of the token that asks.`,
    role: 'viewer',
    shownOnce: ['code'],
    answers: { 201: { description: 'The code.', schema: SignInCode } },
    run: async (_input, { caller, trx }) => {
      const made = await makeCode(trx, caller.tokenId);
      if (made === 'full') {
        throw new ApiError(
          409,
          'too_many_codes',
          'many codes of this token wait to be used: use one of them',
        );
      }
      return { status: 201, body: { code: made.code, expires_at: made.expiresAt.toISOString() } };
    },
  });
}
