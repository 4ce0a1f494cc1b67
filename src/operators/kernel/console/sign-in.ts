// Signing in to the console and out of it. A token is pasted once and sent in a form, or an address with a code is opened; both
// become a session, whose value stands in a cookie. A code is used up by the form, not by opening its address, since mail and
// chat programs open addresses by themselves.

import { type RequestHandler, type Response, Router } from 'express';
import type { Transaction } from 'kysely';
import { senderOf } from '../../../http/index.ts';
import type { Database, DatabaseConnection } from '../../../ledger/index.ts';
import {
  addressWithin,
  type Content,
  clearCookie,
  html,
  readForm,
  seeOther,
  setCookie,
} from '../../../web/index.ts';
import type { Authenticator } from '../access/authenticator.ts';
import { appendToLog } from '../access/operator-log.queries.ts';
import { isRole } from '../access/roles.ts';
import { beginSession, CODE_MINUTES, endSession, hashOf, useCode } from '../access/sessions.queries.ts';
import { type Environment, looksLikeToken } from '../access/token-value.ts';
import type { Token } from '../access/tokens.queries.ts';
import type { ShowView } from './layout.ts';
import { COOKIE, visitorOf } from './visitors.ts';

export const SIGN_IN_PATH = '/sign-in';
const HOME = '/console';

type Deps = {
  readonly authenticator: Pick<Authenticator, 'recognize' | 'identify'>;
  readonly connection: Pick<DatabaseConnection, 'db'>;
  readonly environment: Environment;
  /** For somebody who is not signed in. */
  readonly show: ShowView;
};

type Refused = { readonly status: number; readonly because: Content };

/** Behind the check for forged requests and the rate limit. */
export function createSignIn(deps: Deps): Router {
  const router = Router({ caseSensitive: true, strict: true });
  router.get(SIGN_IN_PATH, (request, response) => {
    const query = new URL(request.originalUrl, 'http://localhost').searchParams;
    deps.show(response, signInPage({ code: query.get('code'), next: ownAddress(query.get('next')) }));
  });
  router.post(SIGN_IN_PATH, signIn(deps));
  router.post('/sign-out', signOut(deps));
  return router;
}

function signIn(deps: Deps): RequestHandler {
  return async (request, response) => {
    const form = await readForm(request);
    const next = ownAddress(form.get('next'));
    const code = form.get('code');
    const token = code === null ? await byToken(deps, form.get('token') ?? '') : await byCode(deps, code);
    if ('because' in token) {
      return deps.show(response, {
        ...signInPage({ code: null, next, refused: token }),
        status: token.status,
      });
    }
    const remoteAddress = senderOf(request);
    const value = await deps.connection.db.transaction().execute(async (trx) => {
      await endFormer(trx, response); // its cookie is about to be overwritten, so nobody could end it
      const session = await beginSession(trx, { tokenId: token.id, remoteAddress });
      const actor = { tokenId: token.id, name: token.name, role: token.role, remoteAddress };
      const how = code === null ? 'token' : 'code';
      await appendToLog(trx, actor, { action: 'session.create', subject: session.id, detail: { by: how } });
      return session.value;
    });
    setCookie(response, COOKIE, value);
    seeOther(response, next);
  };
}

const NOT_VALID: Refused = {
  status: 401,
  because: 'This token is not valid: it is mistyped, revoked or expired, or belongs to another environment.',
};
const AWAY: Refused = { status: 503, because: 'The database does not answer. Try again in a moment.' };
const SCRAPER: Refused = {
  status: 403,
  because: 'This token reads metrics and nothing else. Sign in with a token that has another role.',
};

async function byToken({ authenticator }: Deps, text: string): Promise<Token | Refused> {
  const recognized = await authenticator.recognize(`Bearer ${text.trim()}`);
  if (recognized.kind === 'undetermined') return AWAY;
  if (recognized.kind !== 'known') return NOT_VALID;
  const identity = await authenticator.identify(recognized);
  if (identity.kind === 'undetermined') return AWAY;
  if (identity.kind !== 'token') return NOT_VALID;
  return isRole(identity.token.role) ? identity.token : SCRAPER;
}

async function byCode({ connection, environment }: Deps, code: string): Promise<Token | Refused> {
  const hash = hashOf(code);
  const token = hash && (await useCode(connection.db, hash, environment));
  if (token === undefined) {
    return {
      status: 401,
      because: html`This code was used, is older than ${CODE_MINUTES} minutes, or is mistyped. Print another address with <code>tallyhook console</code>, or paste a token.`,
    };
  }
  return isRole(token.role) ? token : SCRAPER;
}

/** Also where the session has ended already. */
function signOut({ connection, show }: Deps): RequestHandler {
  return async (_request, response) => {
    await connection.db.transaction().execute((trx) => endFormer(trx, response));
    clearCookie(response, COOKIE);
    show(response, {
      title: 'Signed out',
      body: html`<p>Your session has ended. <a href="${HOME}${SIGN_IN_PATH}">Sign in again</a></p>`,
    });
  };
}

/** The session that came with the request, if there is one. */
async function endFormer(trx: Transaction<Database>, response: Response): Promise<void> {
  const caller = visitorOf(response)?.caller;
  if (caller === undefined) return;
  const { sessionId, ...actor } = caller;
  const ended = await endSession(trx, sessionId);
  if (ended?.changed) await appendToLog(trx, actor, { action: 'session.end', subject: sessionId });
}

/** Where to go afterwards: an address of the console, or the console itself. As a browser reads it: `..` leads out of a path. */
function ownAddress(address: string | null): string {
  if (address === null || looksLikeToken(address)) return HOME;
  return addressWithin(HOME, address) ?? HOME;
}

function signInPage({ code, next, refused }: { code: string | null; next: string; refused?: Refused }) {
  const nextField = html`<input type="hidden" name="next" value="${next}">`;
  return {
    title: 'Sign in',
    body: html`${refused && html`<div class="notice bad" role="alert"><p>${refused.because}</p></div>`}
${
  code === null
    ? html`<form class="form" method="post" action="${HOME}${SIGN_IN_PATH}">
<label>Token <input type="password" name="token" required autocomplete="off" spellcheck="false" maxlength="200" autofocus></label>
${nextField}
<button class="main">Sign in</button>
<p class="hint">The token begins with <code>thk_</code>. It is sent once and not kept in the browser. <code>tallyhook console</code> prints an address that signs in without it.</p>
</form>`
    : html`<form class="form" method="post" action="${HOME}${SIGN_IN_PATH}">
<p>You opened an address that signs in once.</p>
<input type="hidden" name="code" value="${code}">${nextField}
<button class="main">Sign in</button>
</form>`
}`,
  };
}
