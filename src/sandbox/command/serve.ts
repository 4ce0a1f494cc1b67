// `tallyhook sandbox serve`: runs the sandbox until a signal. Without --data it belongs to the local run of this folder: it has
// a file server, takes free ports where the usual ones are in use, and its webhooks go to the relay if one runs.

import type { Env } from '../../config.ts';
import { parse } from '../../terminal/arguments.ts';
import { inRepository } from '../../terminal/environment.ts';
import type { Io } from '../../terminal/io.ts';
import { findLocalRelay, type LocalRelay } from '../../tools/send/local-relay.ts';
import { checkWebhookUrl, DEFAULT_SETTINGS, findFfmpeg, type Sandbox, startSandbox } from '../index.ts';
import { makeClips } from './clips.ts';
import { dataFile } from './data.ts';
import { DEFAULT_ACCOUNT, FILES_PORT, SERVE_OPTIONS } from './help.ts';
import { ownToken } from './own-token.ts';
import { freePlace, type Place, placeOf } from './place.ts';
import { startAt, startFiles, untilSignal } from './running.ts';
import { logLevelOf, portOf, toSettings } from './settings.ts';
import { welcome } from './welcome.ts';

type Values = ReturnType<typeof parse<typeof SERVE_OPTIONS>>['values'];

export async function serve(args: string[], env: Env, io: Io): Promise<number> {
  const { values } = parse(args, SERVE_OPTIONS);
  const settings = toSettings(values);
  const level = logLevelOf(values['log-level']);
  const filesAt = fileServerAddress(values);
  const isLocalRun = values.data === undefined;
  const place = isLocalRun ? freePlace() : placeOf(dataFile(values.data));
  const folder = values.files ?? place.files;
  const receiver = values.receiver && checkWebhookUrl('--receiver', values.receiver);

  return untilSignal(io, level, async (running, log) => {
    const relay = isLocalRun ? await findLocalRelay(env) : undefined;
    const files =
      filesAt &&
      (await startAt(io, filesAt, (port) => startFiles(running, { host: filesAt.host, port, folder, log })));
    const receiverUrl = receiver ?? relay?.webhookUrl;
    const localOrigins = [files?.url, relay?.webhookUrl].flatMap((url) => (url ? new URL(url).origin : []));
    const sandbox = await startAt(io, { port: settings.port, isUsual: values.port === undefined }, (port) =>
      startSandbox(
        { ...settings, port, data: place.data, localOrigins, filesUrl: files?.url, receiverUrl },
        { log },
      ),
    );
    running.use(sandbox);
    if (relay) signFor(relay, sandbox);
    if (files) await makeClips({ folder, programs: await findFfmpeg() });
    print(io, sandbox, { place, filesUrl: files?.url, webhookUrl: relay?.webhookUrl, isLocalRun });
  });
}

/** Undefined where no file server is wanted. @throws UsageError */
function fileServerAddress({ data, host, 'files-port': given }: Values) {
  if (given === undefined && data !== undefined) return undefined;
  const port = portOf('--files-port', given, FILES_PORT);
  // It has no authentication. So nothing but an option of its own makes it listen on more than loopback.
  const isUsual = given === undefined;
  return { host: (isUsual ? undefined : host) ?? DEFAULT_SETTINGS.host, port, isUsual };
}

function signFor({ secret }: LocalRelay, { accounts }: Sandbox): void {
  accounts.change(accounts.open(DEFAULT_ACCOUNT), { signingSecret: secret });
}

/** On standard error, apart from the log. */
function print(
  io: Io,
  { url, engine, accounts, dashboardUrl, newSignIn }: Sandbox,
  {
    place: { data, tokenFile },
    filesUrl,
    webhookUrl,
    isLocalRun,
  }: { place: Place; filesUrl: string | undefined; webhookUrl: string | undefined; isLocalRun: boolean },
): void {
  const value = ownToken(accounts, tokenFile);
  const text = welcome({
    url,
    engine: engine.kind === 'ffmpeg' ? `ffmpeg ${engine.version}` : 'simulated: nothing is converted',
    filesUrl,
    token: tokenFile === undefined ? { value } : { file: tokenFile },
    // Elsewhere than in a terminal this may be a log, where nothing may stand that signs in.
    dashboard: io.stderr.isTTY ? newSignIn(accounts.open(DEFAULT_ACCOUNT)) : dashboardUrl,
    data,
    webhookUrl,
    webhooks: webhooksInWords(webhookUrl, isLocalRun),
  });
  io.complain(
    `\n${io.paint('bold', 'The sandbox is ready.')} It stands in for the conversion service, for development.\n`,
  );
  io.complain(text);
}

function webhooksInWords(webhookUrl: string | undefined, isLocalRun: boolean): string {
  if (webhookUrl !== undefined) return `to ${webhookUrl}, signed with the secret of that relay`;
  const signed = "signed with the account's secret";
  return isLocalRun
    ? `to no relay: none runs here. Start one with "${inRepository('npm start', 'tallyhook serve')}", and then the sandbox again`
    : `to the webhook_url of each job, ${signed}`;
}
