// What the sandbox prints when it is ready: its addresses, a first token, and a command that creates a job.

import { type Sandbox, SCOPES, type Settings } from '../sandbox/index.ts';
import { complain, paint } from './output.ts';
import { CLIP } from './sandbox-clips.ts';
import { DEFAULT_ACCOUNT } from './sandbox-help.ts';

/** On standard error, apart from the log: it shows the first token, which nothing else may. */
export function welcome(
  { url, accounts, engine }: Sandbox,
  { allowLocal }: Settings,
  filesUrl: string | undefined,
): void {
  const means = engine.kind === 'ffmpeg' ? `ffmpeg ${engine.version}` : 'simulated: nothing is converted';
  complain(
    `\n${paint('bold', 'The sandbox is ready.')} It stands in for the conversion service, and is not it.\n`,
  );
  complain(`  base_url   ${url}`);
  complain(`  engine     ${means}`);
  if (filesUrl !== undefined) {
    const hint = allowLocal ? '' : '   (jobs may use it only with --allow-local)';
    complain(`  a clip     ${filesUrl}/${CLIP}${hint}`);
  }
  const token = firstToken(accounts);
  if (token !== undefined) complain(`  token      ${token}   (shown only this once)`);
  complain(`
  curl -i ${url}/conversion_jobs -H 'Content-Type: application/json' \\
    -H 'Authorization: Bearer ${token ?? '<token>'}' -d '${exampleJob(allowLocal ? filesUrl : undefined)}'
`);
}

/** Undefined if there are tokens already. A sandbox in memory has no other way to get one. */
function firstToken(accounts: Sandbox['accounts']): string | undefined {
  if (accounts.hasTokens()) return undefined;
  return accounts.createToken({
    account: accounts.open(DEFAULT_ACCOUNT),
    name: 'first token',
    environment: 'live',
    scopes: SCOPES,
    expiresAt: null,
  }).value;
}

function exampleJob(filesUrl = 'https://files.example.com'): string {
  return JSON.stringify({
    job_type: 'video',
    input_url: `${filesUrl}/${CLIP}`,
    output_url: `${filesUrl}/output.webm`,
    input_format: 'mp4',
    output_format: 'webm',
  });
}
