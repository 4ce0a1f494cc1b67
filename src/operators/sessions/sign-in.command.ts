// `tallyhook console`: an address that signs in to the console once, so that no token is pasted.

import type { Env } from '../../config.ts';
import { parse } from '../../terminal/arguments.ts';
import type { Command } from '../../terminal/command.ts';
import { type Io, toJson } from '../../terminal/io.ts';
import { openApi } from '../kernel/api.command.ts';

const help = `Prints an address of the console that signs in once, within ten minutes.

  console

The session has the rights of the token in TALLYHOOK_TOKEN. Whoever has the address can use it: do not share it.`;

async function run(args: string[], env: Env, io: Io): Promise<number> {
  parse(args, {});
  const { client, nextKey, url } = openApi(env, io);
  const { code = '', expires_at: expiresAt } = await client.signInCode(nextKey());
  const address = `${url.replace(/\/+$/, '')}/console/sign-in?code=${code}`;
  if (io.stdout.isTTY) {
    io.say(address);
    io.complain(io.paint('dim', 'signs in once, within ten minutes'));
  } else io.say(toJson({ address, expires_at: expiresAt }));
  return 0;
}

export const consoleCommand: Command = { help, run };
