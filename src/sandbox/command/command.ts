// `tallyhook sandbox`: the stand-in for the conversion service, its dashboard, and commands that do the same.

import { UsageError } from '../../base/errors.ts';
import type { Env } from '../../config.ts';
import { parse } from '../../terminal/arguments.ts';
import type { Command } from '../../terminal/command.ts';
import type { Io } from '../../terminal/io.ts';
import { DEFAULT_SETTINGS, findFfmpeg } from '../index.ts';
import { account } from './account.ts';
import { CLIP, makeClips } from './clips.ts';
import { dashboard } from './dashboard.ts';
import { FILES_FOLDER, FILES_OPTIONS, FILES_PORT, HELP } from './help.ts';
import { startAt, startFiles, untilSignal } from './running.ts';
import { serve } from './serve.ts';
import { logLevelOf, portOf } from './settings.ts';
import { tokens } from './tokens.ts';

async function run(args: string[], env: Env, io: Io): Promise<number> {
  const [first = '', ...others] = args;
  const [command, rest] = first === '' || first.startsWith('-') ? ['serve', args] : [first, others];
  switch (command) {
    case 'serve':
      return serve(rest, env, io);
    case 'files':
      return files(rest, io);
    case 'tokens':
      return tokens(rest, io);
    case 'account':
      return account(rest, io);
    case 'dashboard':
      return dashboard(rest, io);
    default:
      throw new UsageError(`sandbox takes serve, files, tokens, account or dashboard, not "${command}"`);
  }
}

async function files(args: string[], io: Io): Promise<number> {
  const { values } = parse(args, FILES_OPTIONS);
  const { host = DEFAULT_SETTINGS.host, files: folder = FILES_FOLDER } = values;
  const at = { port: portOf('--port', values.port, FILES_PORT), isUsual: values.port === undefined };
  return untilSignal(io, logLevelOf(values['log-level']), async (running, log) => {
    const { url } = await startAt(io, at, (port) => startFiles(running, { host, port, folder, log }));
    await makeClips({ folder, programs: await findFfmpeg() });
    io.complain(`${io.paint('bold', 'Files')}  ${url}/${CLIP}`);
  });
}

export const sandboxCommand: Command = { help: HELP, run };
