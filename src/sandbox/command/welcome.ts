// What the sandbox prints when it is ready: its addresses, where its token is, and a `curl` line that creates a job and works
// as it stands. `npm start -- --sandbox` prints the same.

import { shellWord } from '../../base/text/shell-word.ts';
import { inRepository } from '../../terminal/environment.ts';
import { IN_MEMORY } from '../index.ts';
import { CLIP } from './clips.ts';
import { DEFAULT_DATA } from './help.ts';

/** In a clone, where it is: the name alone must not be given to npm. */
const COMMAND = `${inRepository('node_modules/.bin/')}tallyhook`;

export type Ready = {
  readonly url: string;
  readonly engine: string;
  /** The address of the dashboard, with a code that signs in where it may be printed. */
  readonly dashboard: string;
  /** Undefined without a file server. */
  readonly filesUrl: string | undefined;
  /** The token itself, only where it cannot be kept in a file. */
  readonly token: { readonly file: string } | { readonly value: string };
  readonly data: string;
  /** The relay that takes its webhooks. */
  readonly webhookUrl: string | undefined;
  /** Where webhooks go, for a person. */
  readonly webhooks: string;
};

export function welcome(ready: Ready): string {
  const { url, engine, dashboard, filesUrl, token, data, webhooks } = ready;
  const isShown = 'value' in token;
  const bearer = isShown ? token.value : `$(cat ${shellWord(token.file)})`;
  return `  base_url   ${url}
  dashboard  ${dashboard}
             ${howToSignIn(ready)}
  engine     ${engine}
${filesUrl === undefined ? '' : `  files      ${filesUrl}/${CLIP}\n`}\
  token      ${isShown ? `${token.value}   (shown only this once)` : token.file}
  data       ${data}
  webhooks   ${webhooks}

${headline(ready)}

  curl -i ${url}/conversion_jobs -H 'Content-Type: application/json' \\
    -H "Authorization: Bearer ${bearer}" -d '${exampleJob(ready)}'
`;
}

function howToSignIn({ dashboard, data }: Ready): string {
  const hasCode = dashboard.includes('?code=');
  if (data === IN_MEMORY) return hasCode ? 'signs in once, within ten minutes' : 'sign in with the token';
  const place = data === DEFAULT_DATA ? '' : ` --data ${shellWord(data)}`;
  const when = hasCode ? 'signs in once, within ten minutes. Later' : 'to sign in';
  return `${when}: ${COMMAND} sandbox dashboard${place}`;
}

function headline({ filesUrl, webhookUrl }: Ready): string {
  if (filesUrl === undefined) {
    return 'To create a job, put your own file addresses into this line (or run a file server: --files-port 0):';
  }
  return webhookUrl === undefined
    ? 'A job that it converts:'
    : 'A job that it converts and reports to the relay:';
}

function exampleJob({ filesUrl = 'https://files.example.com', webhookUrl }: Ready): string {
  return JSON.stringify({
    job_type: 'video',
    input_url: `${filesUrl}/${CLIP}`,
    output_url: `${filesUrl}/converted.webm`,
    input_format: 'mp4',
    output_format: 'webm',
    ...(webhookUrl !== undefined && { webhook_url: webhookUrl }),
  });
}
