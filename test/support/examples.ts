// The subscribers in examples/, started exactly as they are written, each with a database of its own for its effects.

import { execFile } from 'node:child_process';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Status } from '../../src/event/index.ts';
import { createTestDatabase } from './database.ts';
import { createFolder } from './folder.ts';
import { INHERITED, type RunningProcess, startProgram } from './replica.ts';
import { openSession, openTransaction } from './transaction.ts';
import { until } from './until.ts';

/** A row that an example wrote. */
export type Effect = {
  readonly job: string;
  readonly status: Status;
  readonly progress: number | null;
  readonly cost: number | null;
};

type Store = AsyncDisposable & {
  /** What names it for the example. */
  readonly env: Record<string, string>;
  /** In the order in which they were made. */
  readonly effects: () => Promise<Effect[]>;
  /** From now on no effect of this job can be written. */
  readonly refuse: (job: string) => Promise<void>;
  /** Nothing can be written until the returned function is called. */
  readonly hold: () => Promise<() => Promise<void>>;
  /** Ends all connections and refuses new ones, until the returned function is called. A file cannot be away. */
  readonly cut?: () => Promise<() => Promise<void>>;
};

export type Example = AsyncDisposable & {
  readonly queue: string;
  readonly store: Store;
  /** Resolves when it consumes, or waits for its turn behind another one. */
  readonly start: (amqpUrl: string) => Promise<RunningProcess>;
};

export type Language = 'Node' | 'Python' | 'Go';

/** Of the languages that are there: `npm test` looks for them, installs them if it may, and names them. */
export const PROGRAMS: ReadonlyMap<Language, string> = new Map(
  Object.entries({
    Node: process.execPath,
    Python: process.env['TEST_PYTHON'],
    Go: process.env['TEST_GO'],
  }).filter((entry): entry is [Language, string] => Boolean(entry[1])),
);

/** From Debian's packages; without a network and without a C compiler. */
const GO_ENV = {
  GOPATH: '/usr/share/gocode',
  GO111MODULE: 'off',
  CGO_ENABLED: '0',
  GOFLAGS: '',
  // It survives the run, so that the next one does not compile the libraries again: 5 s of processor time.
  GOCACHE: fileURLToPath(new URL('../../node_modules/.cache/tallyhook-go', import.meta.url)),
};
const START_MS = 30_000;

const at = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

export async function prepareExample(language: Language, program: string): Promise<Example> {
  const queue = `history-${language.toLowerCase()}`;
  await using stack = new AsyncDisposableStack();
  const store = stack.use(await (language === 'Python' ? createSqliteStore() : createPostgresStore()));
  const command = stack.use(await commandOf(language, program));
  const running = stack.use(new AsyncDisposableStack());
  const all = stack.move();
  return {
    queue,
    store,
    start: async (amqpUrl) => {
      const env = { ...store.env, AMQP_URL: amqpUrl, QUEUE: queue };
      const started = running.use(startProgram(command.program, command.args, { env }));
      await until(
        `the ${language} example is ready`,
        () => {
          const output = started.stdout() + started.stderr();
          return output.includes('waiting for events') ? true : undefined;
        },
        { limitMs: START_MS },
      );
      return started;
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

type Command = AsyncDisposable & { readonly program: string; readonly args: readonly string[] };

async function commandOf(language: Language, program: string): Promise<Command> {
  if (language === 'Go') return compileGo(program);
  const file = language === 'Node' ? 'node/subscriber.mjs' : 'python/subscriber.py';
  return { program, args: [at(`examples/${file}`)], [Symbol.asyncDispose]: async () => {} };
}

async function compileGo(go: string): Promise<Command> {
  const folder = await createFolder();
  const program = folder.path('subscriber');
  const env = { ...INHERITED, ...GO_ENV, HOME: folder.path('.') };
  await promisify(execFile)(go, ['build', '-o', program, at('examples/go/main.go')], { env });
  return { program, args: [], [Symbol.asyncDispose]: folder[Symbol.asyncDispose] };
}

const EFFECTS =
  'select job_id as job, status, progress, cast(cost_cents as int) as cost from job_history order by position';

async function createPostgresStore(): Promise<Store> {
  const database = await createTestDatabase({ empty: true });
  return {
    // lib/pq asks for TLS unless told otherwise.
    env: { DATABASE_URL: `${database.url}?sslmode=disable` },
    effects: () => database.query<Effect>(EFFECTS),
    refuse: async (job) => {
      await database.query(`alter table job_history add check (job_id <> '${job}')`);
    },
    hold: async () => {
      const transaction = await openTransaction(database);
      await transaction.query('lock table handled_events in exclusive mode');
      return transaction.rollback;
    },
    cut: async () => {
      await setConnections(database.name, false);
      return () => setConnections(database.name, true);
    },
    [Symbol.asyncDispose]: database[Symbol.asyncDispose],
  };
}

async function setConnections(name: string, areAllowed: boolean): Promise<void> {
  await using server = await openSession({ url: process.env['TEST_DATABASE_URL'] ?? '' });
  await server.query(`alter database ${name} allow_connections ${areAllowed}`);
  if (!areAllowed)
    await server.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [name]);
}

async function createSqliteStore(): Promise<Store> {
  const folder = await createFolder();
  const file = folder.path('history.db');
  const database = new DatabaseSync(file);
  return {
    env: { DATABASE_FILE: file },
    effects: async () => database.prepare(EFFECTS).all() as unknown[] as Effect[],
    refuse: async (job) => {
      // An overflow: as "no such table" it is an OperationalError in Python, and so is a locked file, which is waited for.
      database.exec(
        `create trigger refused before insert on job_history when new.job_id = '${job}'
         begin select abs(-9223372036854775808 + 0 * length(new.job_id)); end`,
      );
    },
    hold: async () => {
      database.exec('begin immediate');
      return async () => database.exec('rollback');
    },
    [Symbol.asyncDispose]: async () => {
      database.close();
      await folder[Symbol.asyncDispose]();
    },
  };
}
