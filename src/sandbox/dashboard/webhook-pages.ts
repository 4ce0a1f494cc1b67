// How the account's webhooks are sent, and the secret that signs them. The secret is shown at a press alone.

import { type RequestHandler, type Response, Router } from 'express';
import { UsageError } from '../../base/errors.ts';
import { type Content, html, readForm, seeOther } from '../../web/index.ts';
import type { AccountChanges } from '../accounts/accounts.ts';
import { newSigningSecret } from '../accounts/checks.ts';
import { show } from './layout.ts';
import { at } from './methods.ts';
import { faultList, form, notice } from './shown.ts';
import { accountOf, DASHBOARD_PATH, type Site } from './site.ts';
import { readSettings, settingsForm, toValues, type Values, valuesIn } from './webhook-form.ts';

const WEBHOOKS = `${DASHBOARD_PATH}/webhooks`;

export function webhookPages(site: Site): Router {
  const router = Router({ caseSensitive: true, strict: true });
  at(router, '/webhooks', { get: read(site), post: change(site) });
  at(router, '/webhooks/secret', { get: hideSecret, post: showSecret(site) });
  at(router, '/webhooks/secret/rotate', { post: rotate(site) });
  return router;
}

const NOTICES: ReadonlyMap<unknown, string> = new Map([
  ['saved', 'The settings are saved. They hold for the next attempt of each webhook.'],
  [
    'rotated',
    'There is a new signing secret. Give it to your receiver: webhooks are signed with it from now on, also those under way.',
  ],
]);

function read(site: Site): RequestHandler<{ id: string }> {
  return ({ query }, response) => {
    const said = NOTICES.get(query['done']);
    page(site, response, { top: said !== undefined && notice(said), values: toValues(accountOf(response)) });
  };
}

function change(site: Site): RequestHandler<{ id: string }> {
  return async (request, response) => {
    const values = valuesIn(await readForm(request));
    let changes: AccountChanges;
    try {
      changes = readSettings(values);
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      return page(site, response, { top: faultList([error.message]), values, status: 422 });
    }
    site.accounts.change(accountOf(response), changes);
    seeOther(response, `${WEBHOOKS}?done=saved`);
  };
}

function showSecret(site: Site): RequestHandler<{ id: string }> {
  return async (request, response) => {
    await readForm(request);
    const account = accountOf(response);
    page(site, response, { values: toValues(account), secret: site.accounts.signingSecret(account.id) });
  };
}

/** For somebody who comes back to the address that showed it. */
const hideSecret: RequestHandler<{ id: string }> = (_request, response) =>
  seeOther(response, `${WEBHOOKS}#secret`);

function rotate({ accounts, once }: Site): RequestHandler<{ id: string }> {
  return async (request, response) => {
    const account = accountOf(response);
    once.run(`secret ${account.id}`, await readForm(request), () => {
      accounts.change(account, { signingSecret: newSigningSecret() });
      return 'rotated';
    });
    seeOther(response, `${WEBHOOKS}?done=rotated#secret`);
  };
}

type Shown = {
  readonly top?: Content;
  readonly values: Values;
  readonly secret?: string;
  readonly status?: number;
};

function page(site: Site, response: Response, { top, values, secret, status = 200 }: Shown): void {
  const content = html`${top}
${settingsForm(values, accountOf(response), site)}
<section id="secret"><h2>Signing secret</h2>
<p>It is the key of <code>X-Service-Signature</code>. Your receiver checks webhooks with it.</p>
${
  secret === undefined
    ? form(
        '/webhooks/secret',
        html`<code aria-hidden="true">••••••••••••••••</code> <button>Show the secret</button>`,
        'actions',
      )
    : html`<p class="actions"><code class="value" id="value">${secret}</code> <button type="button" data-copy="value" hidden>Copy</button>
<a class="button" href="${WEBHOOKS}#secret">Hide</a></p>`
}
<details class="confirm"><summary>Replace the secret</summary>
${form(
  '/webhooks/secret/rotate',
  html`<p>Webhooks are signed with the new secret at once. Your receiver rejects them until it has it.</p>
<button class="danger">Replace it now</button>`,
)}</details>
</section>`;
  show(site, response, { title: 'Webhooks', section: '/webhooks', content, status });
}
