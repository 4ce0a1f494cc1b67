// `tallyhook replicas`: the processes of the service.

import type { Env } from '../../config.ts';
import { parse } from '../../terminal/arguments.ts';
import { nounCommand } from '../../terminal/command.ts';
import type { Io } from '../../terminal/io.ts';
import { printTable } from '../../terminal/listing.ts';
import { ago } from '../../terminal/readable.ts';
import type { Column } from '../../terminal/table.ts';
import type { Answers } from '../client/index.ts';
import { openApi } from '../kernel/api.command.ts';
import { idColumn, nameColumn, numberColumn, timeColumn } from '../kernel/list/looks.command.ts';

const help = `The processes of the service: which version each one runs, and when it was last heard of.

  replicas list         the newest first

"late": nothing was heard of it for 30 s. It was killed, or it cannot reach Postgres. An hour later it is no longer listed.
A replica that stops is no longer listed at once.`;

type Replica = Answers['replicas']['items'][number];

async function list(args: string[], env: Env, io: Io): Promise<number> {
  parse(args, {});
  const replicas = await openApi(env, io).client.replicas();
  if (!io.stdout.isTTY) {
    for (const replica of replicas) await io.putJson(replica);
    return 0;
  }
  if (replicas.length === 0) io.complain('no replica has said that it runs');
  else await printTable(io, replicas, REPLICAS);
  return 0;
}

const stateOf = ({ leads, is_late: isLate }: Replica) =>
  [leads && 'leads', isLate && 'late'].filter(Boolean).join(', ');

export const REPLICAS: readonly Column<Replica>[] = [
  { head: 'version', text: (item) => item.version },
  nameColumn('host', (item) => item.host),
  { head: '', text: stateOf, colour: (item) => (item.is_late ? 'red' : 'green') },
  timeColumn('started (UTC)', (item) => item.started_at),
  numberColumn('last heard of', (item) => ago(item.seen_at)),
  idColumn('id', (item) => item.id),
];

export const replicas = nounCommand('replicas', { help, verbs: { list }, otherwise: list });
