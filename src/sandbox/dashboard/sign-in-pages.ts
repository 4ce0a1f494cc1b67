// Signing in and out. An address with a code shows a button, and its POST uses the code up, since programs follow links to
// look at them. A token is pasted into a form and never stands in an address.

import { type RequestHandler, Router } from 'express';
import {
  addressWithin,
  type Content,
  type Html,
  html,
  readCookie,
  readForm,
  seeOther,
  setCookie,
} from '../../web/index.ts';
import type { SignInFault } from '../accounts/sessions.ts';
import { showOutside } from './layout.ts';
import { at } from './methods.ts';
import { COOKIE, countGuess, SIGN_IN_PATH, signedOut } from './session-gate.ts';
import { notice } from './shown.ts';
import { DASHBOARD_PATH, type Site } from './site.ts';

const COMMAND = 'tallyhook sandbox dashboard';

const FAULTS: Readonly<Record<SignInFault, string>> = {
  code_unknown: `The code in this address is not one of ours. "${COMMAND}" prints a new address.`,
  code_used: `This address was used already: each signs in once. "${COMMAND}" prints a new one.`,
  code_expired: `This address is older than ten minutes, and no longer signs in. "${COMMAND}" prints a new one.`,
  token_invalid: 'This token is not valid: it is mistyped, has expired or was revoked.',
  scopes_missing:
    'This token lacks some scopes. The dashboard makes tokens with any scope, so only a token with all scopes signs in.',
};

export function signInPages(site: Site): Router {
  const router = Router({ caseSensitive: true, strict: true });
  at(router, '/sign-in', { get: readSignIn(site), post: signIn(site) });
  at(router, '/sign-out', { post: signOut(site) });
  return router;
}

type Shown = {
  readonly code: string;
  readonly next: string;
  readonly before?: Content;
  readonly status?: number;
};

function readSignIn(site: Site): RequestHandler<{ id: string }> {
  return ({ query }, response) => {
    const { code = '', next = '', ended, out } = query as Record<string, unknown>;
    const before =
      ended === '1'
        ? html`<div class="notice warn"><p>Your session has ended: it was idle for two hours, is older than a day, or its token is no
longer valid.</p></div>`
        : out === '1' && notice('You have signed out.');
    page(site, response, { code: textOf(code), next: textOf(next), before });
  };
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function signIn(site: Site): RequestHandler<{ id: string }> {
  const { sessions, limits } = site;
  return async (request, response) => {
    const given = await readForm(request);
    const token = given.get('token')?.trim();
    const next = given.get('next') ?? '';
    const found = token === undefined ? sessions.byCode(given.get('code') ?? '') : sessions.byToken(token);
    if ('fault' in found) {
      await countGuess(limits, request);
      const before = html`<div class="notice bad" role="alert"><p>${FAULTS[found.fault]}</p></div>`;
      return page(site, response, {
        code: '',
        next,
        before,
        status: found.fault === 'scopes_missing' ? 403 : 401,
      });
    }
    setCookie(response, COOKIE, found.session);
    seeOther(response, addressWithin(DASHBOARD_PATH, next) ?? DASHBOARD_PATH);
  };
}

function signOut({ sessions }: Site): RequestHandler<{ id: string }> {
  return async (request, response) => {
    await readForm(request);
    const session = readCookie(request, COOKIE);
    if (session !== undefined) sessions.end(session);
    signedOut(response);
    seeOther(response, `${SIGN_IN_PATH}?out=1`);
  };
}

function page(site: Site, response: Parameters<RequestHandler>[1], shown: Shown): void {
  const { code, next, before, status = 200 } = shown;
  const content = html`${before}
<p class="dim">The dashboard of an account in this stand-in for the conversion service.</p>
${code === '' ? byToken(next) : byCode(code, next)}`;
  showOutside(site, response, { title: 'Sign in', status, content });
}

function byCode(code: string, next: string): Html {
  return html`<form class="form" method="post" action="${SIGN_IN_PATH}">
<p>The address that you opened signs in once. Press the button within ten minutes after it was printed.</p>
<input type="hidden" name="code" value="${code}">
<input type="hidden" name="next" value="${next}">
<button class="main">Sign in</button>
</form>`;
}

function byToken(next: string): Html {
  return html`<form class="form" method="post" action="${SIGN_IN_PATH}">
<label>API token of the account, with all scopes
<input type="password" name="token" required autocomplete="off" spellcheck="false" placeholder="cvs_live_…"></label>
<input type="hidden" name="next" value="${next}">
<button class="main">Sign in</button>
</form>
<p>Or run <code>${COMMAND}</code>: it prints an address that signs in once, without a token.</p>`;
}
