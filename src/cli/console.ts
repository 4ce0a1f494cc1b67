// `tallyhook console`: an address that signs in to the console once, so that no token is pasted.

import type { Env } from '../config.ts';
import { openApi } from './api.ts';
import { parse } from './arguments.ts';
import type { Command } from './command.ts';
import { complain, paint, say, toJson } from './output.ts';

const help = `Prints an address of the console that signs in once, within ten minutes.

  console

The session has the rights of the token in TALLYHOOK_TOKEN. Whoever has the address can use it: do not share it.`;

async function run(args: string[], env: Env): Promise<number> {
  parse(args, {});
  const { client, nextKey, url } = openApi(env);
  const { code = '', expires_at: expiresAt } = await client.signInCode(nextKey());
  const address = `${url.replace(/\/+$/, '')}/console/sign-in?code=${code}`;
  if (process.stdout.isTTY) {
    say(address);
    complain(paint('dim', 'signs in once, within ten minutes'));
  } else say(toJson({ address, expires_at: expiresAt }));
  return 0;
}

export const consoleCommand: Command = { help, run };
