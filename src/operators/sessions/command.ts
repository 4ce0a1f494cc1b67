// `tallyhook sessions`: who is signed in to the console, and how to end that.

import type { Env } from '../../config.ts';
import { argumentOf, parse } from '../../terminal/arguments.ts';
import { nounCommand } from '../../terminal/command.ts';
import { type Io, toJson } from '../../terminal/io.ts';
import { printTable } from '../../terminal/listing.ts';
import { clean } from '../../terminal/readable.ts';
import type { Column } from '../../terminal/table.ts';
import type { Answers } from '../client/index.ts';
import { openApi } from '../kernel/api.command.ts';
import { idColumn, nameColumn, timeColumn } from '../kernel/list/looks.command.ts';

const help = `Browsers that are signed in to the console. A session has the rights of its token, and ends with it.

  sessions list         the open ones, newest first
  sessions end ID       its next request asks to sign in; the token stays valid

Needs the role admin. "tallyhook console" prints an address that signs in.`;

type Session = Answers['sessions']['items'][number];

const COLUMNS: readonly Column<Session>[] = [
  idColumn('id', ({ id }) => id),
  nameColumn('token', (session) => session.token_name),
  { head: 'from', text: (session) => session.remote_address },
  timeColumn('begun (UTC)', (session) => session.created_at),
  timeColumn('last used (UTC)', (session) => session.last_used_at),
  { ...timeColumn('ends (UTC)', (session) => session.expires_at), drop: true },
];

async function list(args: string[], env: Env, io: Io): Promise<number> {
  parse(args, {});
  const sessions = await openApi(env, io).client.sessions();
  if (!io.stdout.isTTY) {
    for (const session of sessions) await io.putJson(session);
    return 0;
  }
  if (sessions.length === 0) io.complain('nobody is signed in');
  else await printTable(io, sessions, COLUMNS);
  return 0;
}

async function end(args: string[], env: Env, io: Io): Promise<number> {
  const id = argumentOf(parse(args, {}, 1).positionals, 'the id of a session');
  const { client, nextKey } = openApi(env, io);
  const ended = await client.endSession(id, nextKey());
  io.say(io.stdout.isTTY ? `${clean(ended.id)} has ended` : toJson(ended));
  return 0;
}

export const sessions = nounCommand('sessions', { help, verbs: { list, end } });
