// What `npm start` prints when all runs: addresses, and lines to paste.

import { relative } from 'node:path';
import { sampleNotification } from '../src/testing/index.ts';
import type { Place } from '../src/sandbox/command/place.ts';
import { welcome } from '../src/sandbox/command/welcome.ts';
import { namesInFile } from '../src/tools/send/secret.ts';
import type { LocalEnv } from './local-env.ts';
import { paint, say } from './output.ts';
import type { Sandbox } from './sandbox.ts';

export type RunningSandbox = Sandbox & { readonly place: Place; readonly engine: string };

export function printWelcome(
  env: LocalEnv,
  { signIn, sandbox }: { readonly signIn: string; readonly sandbox: RunningSandbox | undefined },
): void {
  const webhooks = `http://127.0.0.1:${env.PORT}/webhooks`;
  const body = sampleNotification({ kind: 'progress', job: 'job_by_hand', percent: 45 });
  const signature = `sha256=$(printf %s "$body" | openssl dgst -sha256 -hmac "$SIGNING_SECRET" | sed 's/.* //')`;
  const source = namesInFile({ SOURCES_FILE: env.SOURCES_FILE }).find((name) => name !== 'default');
  say(`
${paint('bold', 'Tallyhook is ready.')}

  webhooks    ${webhooks}, for the source "default"
              ${webhooks}/NAME, for a source in the file below
  sources     ${shown(env.SOURCES_FILE)}: add yours, the relay reads it again within a second
  operators   ${signIn}
              the console in a browser; the address signs in once, within ten minutes, and
              "node_modules/.bin/tallyhook console" prints another one
  their API   ${env.TALLYHOOK_URL}/api/v1
  token       ${env.TALLYHOOK_TOKEN}
  settings    .local/env, for your shell: . ./.local/env
  log         .local/logs/tallyhook.log

From another terminal in this folder:

  node_modules/.bin/tallyhook send completed
${source === undefined ? '' : `  node_modules/.bin/tallyhook send completed --source ${source}\n`}
or by hand:

  . ./.local/env; body='${body}'; \\
  curl -i "http://127.0.0.1:$PORT/webhooks" -H 'Content-Type: application/json' --data-binary "$body" \\
    -H "X-Service-Signature: ${signature}"

What became of it, as operators see it:

  . ./.local/env; curl -H "Authorization: Bearer $TALLYHOOK_TOKEN" "$TALLYHOOK_URL/api/v1/jobs/default/job_by_hand"
`);
  if (sandbox) printSandbox(sandbox, webhooks);
  say('Ctrl-C ends everything. Events, as a subscriber receives them:\n');
}

function printSandbox(
  { baseUrl, filesUrl, signInUrl, place, engine }: RunningSandbox,
  webhookUrl: string,
): void {
  const text = welcome({
    url: baseUrl,
    dashboard: signInUrl,
    engine: engine === 'simulated' ? 'simulated: nothing is converted' : engine,
    filesUrl,
    token: { file: shown(place.tokenFile ?? '') },
    data: shown(place.data),
    webhookUrl,
    webhooks: `to ${webhookUrl}, signed with the secret of the relay`,
  });
  say(`The sandbox stands in for the conversion service, for development (docs/sandbox.md):

${text}`);
}

function shown(path: string): string {
  const fromHere = relative(process.cwd(), path);
  return fromHere.startsWith('..') ? path : fromHere;
}
