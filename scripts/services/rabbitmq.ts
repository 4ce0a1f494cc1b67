// Runs a private RabbitMQ node on loopback, with its own name, folder, ports, cookie and user, alone or as a member of a cluster.
// Needs no epmd and leaves none running. Does not touch a broker that already runs on the machine.

import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { closeSync, existsSync, openSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { connect } from 'amqplib';
import { findRabbitmq } from './find-rabbitmq.ts';
import { lastLines, makePrivateFolder, makeThrowAwayFolder } from './folders.ts';
import { createGuard, type Ending, type Guard, type Guarded } from './guard.ts';
import { answers, findFreePort } from './ports.ts';

export type RabbitmqServer = AsyncDisposable & {
  /** As an administrator, on the virtual host `/`. */
  readonly url: string;
  readonly port: number;
  /** The Erlang machine's. */
  readonly pid: number;
  readonly dir: string;
  /** Runs `rabbitmqctl` on this node. @returns its output. @throws Error with its error output */
  readonly ctl: (...args: string[]) => Promise<string>;
  /** The same as a program and its environment, for scripts that call `rabbitmqctl`. */
  readonly ctlCommand: () => CtlCommand;
  /** Resolves when this run of the node has ended for any reason. */
  readonly exited: () => Promise<unknown>;
  /** Starts it on the same port and data; resolves when it takes connections. Does nothing if it runs. */
  readonly start: () => Promise<void>;
  readonly stop: () => Promise<void>;
  /** To the Erlang machine and its children. After SIGKILL, resolves when it has ended. */
  readonly kill: (signal: NodeJS.Signals) => Promise<void>;
  /** Stops it, and deletes the folder and closes the guard if they are its own. */
  readonly close: () => Promise<void>;
};

/** Names and values as in rabbitmq.conf, beside ours. */
export type RabbitmqSettings = Readonly<Record<string, string>>;

/** What the nodes of a cluster know of each other without an epmd: all have one port for this, each on an address of its own. */
export type RabbitmqMember = {
  /** `name@host` */
  readonly name: string;
  /** Of loopback. */
  readonly address: string;
  readonly distributionPort: number;
  /** Where this node finds each host of the cluster, itself too. */
  readonly addresses: Readonly<Record<string, string>>;
  readonly cookie: string;
  readonly password: string;
  /** After how long, and up to a quarter more, a node that is silent counts as gone. */
  readonly tickS: number;
};

type CtlCommand = {
  readonly program: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
};

type Node = {
  readonly dir: string;
  readonly programs: string;
  readonly name: string;
  readonly password: string;
  readonly port: number;
  /** For other Erlang nodes, such as rabbitmqctl. */
  readonly distributionPort: number;
  readonly settings: RabbitmqSettings;
  readonly member: RabbitmqMember | undefined;
};

type Launched = { readonly node: Node; readonly server: Guarded };

const USER = 'tallyhook';
const START_TIMEOUT_MS = 90_000;
const CTL_TIMEOUT_MS = 30_000;
const POLL_MS = 50;
/** How often other ports are chosen when one was taken between its choice and its use. */
const PORT_ATTEMPTS = 5;
const ENDING: Ending = { signal: 'SIGTERM', graceMs: 20_000 };

/** Nobody listens there. So the node does not register with an epmd that others share on this machine. */
const NO_EPMD_PORT = '1';

const HOSTS_FILE = 'hosts.inetrc';

const runFile = promisify(execFile);

/**
 * Starts the node in `dir`, which is made the first time, or in a throw-away folder. Installs RabbitMQ if it is missing and we
 * have the rights. With `port` it listens there or fails; without, on `preferredPort` or any free one. A `guard` that is passed
 * in is not closed. `settings` are added to ours.
 * @throws Error with the end of the node's log, or with what to do
 */
export async function startRabbitmq(
  options: {
    dir?: string;
    port?: number;
    preferredPort?: number;
    guard?: Guard;
    log?: (line: string) => void;
    settings?: RabbitmqSettings;
    member?: RabbitmqMember;
  } = {},
): Promise<RabbitmqServer> {
  const { log = () => {} } = options;
  const guard = options.guard ?? createGuard();
  try {
    const dir = options.dir ?? makeThrowAwayFolder(guard);
    makePrivateFolder(dir); // RabbitMQ writes messages and logs under our account, with modes of its own
    const programs = await findRabbitmq({ guard, logFile: join(dir, 'install.log'), log });
    const first = await startOnFreePorts({ ...options, dir, programs, guard });
    return toHandle(first, { guard, ownsGuard: options.guard === undefined });
  } catch (error) {
    if (options.guard === undefined) await guard.close();
    throw error;
  }
}

function toHandle(
  first: Launched,
  { guard, ownsGuard }: { guard: Guard; ownsGuard: boolean },
): RabbitmqServer {
  let { node, server } = first;

  async function kill(signal: NodeJS.Signals): Promise<void> {
    server.send(signal);
    if (signal === 'SIGKILL') await server.exited;
  }

  async function start(): Promise<void> {
    if (!server.hasExited()) return;
    // While it was stopped, another server may have taken the port where Erlang nodes talk to each other.
    const onFreePort = async () => ({ ...node, distributionPort: await distributionPortOf(node.member) });
    ({ node, server } = await launchOnFreePorts(onFreePort, guard));
  }

  async function stop(): Promise<void> {
    await server.end();
  }

  async function close(): Promise<void> {
    await stop();
    if (ownsGuard) await guard.close();
  }

  return {
    url: urlOf(node),
    port: node.port,
    dir: node.dir,
    get pid() {
      return server.pid;
    },
    ctl: (...args) => ctl(node, args),
    ctlCommand: () => ctlCommand(node),
    exited: () => server.exited,
    start,
    stop,
    kill,
    close,
    [Symbol.asyncDispose]: close,
  };
}

async function startOnFreePorts(options: {
  dir: string;
  programs: string;
  guard: Guard;
  port?: number;
  preferredPort?: number;
  settings?: RabbitmqSettings;
  member?: RabbitmqMember;
}): Promise<Launched> {
  const { dir, programs, guard, settings = {}, member } = options;
  const name = member?.name ?? nodeName(dir);
  const password = secretIn(join(dir, 'password'), member?.password);
  // The cookie that Erlang makes by itself can be guessed from the time. Erlang refuses one that others can read.
  secretIn(join(dir, '.erlang.cookie'), member?.cookie);
  return launchOnFreePorts(async () => {
    await waitForPredecessor(dir, name);
    const port = options.port ?? (await findFreePort(options.preferredPort));
    const distributionPort = await distributionPortOf(member);
    return { dir, programs, name, password, port, distributionPort, settings, member };
  }, guard);
}

const distributionPortOf = async (member: RabbitmqMember | undefined): Promise<number> =>
  member?.distributionPort ?? (await findFreePort());

/** Tries again with other ports if one was taken between its choice and its use. */
async function launchOnFreePorts(choosePorts: () => Promise<Node>, guard: Guard): Promise<Launched> {
  for (let attempt = 1; ; attempt++) {
    const node = await choosePorts();
    try {
      return { node, server: await launch(node, guard) };
    } catch (error) {
      const isTaken = error instanceof Error && /eaddrinuse/i.test(error.message);
      if (!isTaken || attempt === PORT_ATTEMPTS) throw error;
    }
  }
}

/** Always the same for a folder, since queues belong to a node by its name. */
function nodeName(dir: string): string {
  const hash = createHash('sha256').update(realpathSync(dir)).digest('hex').slice(0, 12);
  return `tallyhook-${hash}@localhost`;
}

function secretIn(path: string, secret = randomBytes(24).toString('hex')): string {
  if (!existsSync(path)) writeFileSync(path, secret, { mode: 0o600 });
  return readFileSync(path, 'utf8');
}

/** Resolves when a client can log in. */
async function launch(node: Node, guard: Guard): Promise<Guarded> {
  const { dir } = node;
  writeFileSync(join(dir, 'rabbitmq.conf'), configuration(node), { mode: 0o600 });
  writeFileSync(join(dir, 'enabled_plugins'), '[].\n');
  writeFileSync(join(dir, 'env.conf'), '');
  writeFileSync(join(dir, HOSTS_FILE), hosts(node.member));
  const output = openSync(join(dir, 'output.log'), 'w', 0o600);
  const server = guard.spawn(join(node.programs, 'rabbitmq-server'), [], {
    cwd: dir,
    env: serverEnvironment(node),
    ending: ENDING,
    endsLast: true,
    output,
  });
  closeSync(output);
  writeFileSync(join(dir, 'pid'), String(server.pid));
  try {
    await waitUntilUp(server, node);
    return server;
  } catch (error) {
    await server.end({ signal: 'SIGKILL', graceMs: 0 });
    throw error;
  }
}

function configuration({ port, password, settings }: Node): string {
  return `${[
    `listeners.tcp.1 = 127.0.0.1:${port}`,
    // These create the user when the node is new.
    `default_user = ${USER}`,
    `default_pass = ${password}`,
    'default_user_tags.administrator = true',
    'default_permissions.configure = .*',
    'default_permissions.read = .*',
    'default_permissions.write = .*',
    // Absolute, so that an alarm comes from our own use and not from the machine's other work.
    'vm_memory_high_watermark.absolute = 1GB',
    'disk_free_limit.absolute = 50MB',
    'log.file.level = info',
    'log.console = false',
    ...Object.entries(settings).map(([name, value]) => `${name} = ${value}`),
  ].join('\n')}\n`;
}

/** Erlang's own file of hosts, which stands before the system's. */
function hosts(member: RabbitmqMember | undefined): string {
  const lines = Object.entries(member?.addresses ?? {}).map(
    ([host, address]) => `{host, ${erlangAddress(address)}, ["${host}"]}.\n`,
  );
  return ['{lookup, [file, native]}.\n', ...lines].join('');
}

const erlangAddress = (address: string): string => `{${address.replaceAll('.', ',')}}`;

function serverEnvironment(node: Node): NodeJS.ProcessEnv {
  const { dir, name, distributionPort } = node;
  return {
    ...ownEnvironment(dir),
    RABBITMQ_NODENAME: name,
    RABBITMQ_CONFIG_FILE: join(dir, 'rabbitmq.conf'),
    RABBITMQ_ADVANCED_CONFIG_FILE: join(dir, 'advanced.config'),
    RABBITMQ_ENABLED_PLUGINS_FILE: join(dir, 'enabled_plugins'),
    RABBITMQ_MNESIA_BASE: join(dir, 'data'),
    RABBITMQ_LOG_BASE: join(dir, 'log'),
    RABBITMQ_LOGS: join(dir, 'rabbitmq.log'),
    RABBITMQ_PID_FILE: join(dir, 'data', 'pid'),
    RABBITMQ_DIST_PORT: String(distributionPort),
    // With this the script becomes the Erlang machine instead of its parent, so that our signals reach it.
    RUNNING_UNDER_SYSTEMD: 'true',
    // With its name given here, Erlang is a node before RabbitMQ looks for an epmd, so that none is asked or started.
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: [
      `-sname ${name}`,
      ...withoutEpmd(distributionPort),
      `-kernel inet_dist_use_interface ${erlangAddress(node.member?.address ?? '127.0.0.1')}`,
      // Erlang has been a node for a while when RabbitMQ reads this in its settings.
      ...(node.member === undefined ? [] : [`-kernel net_ticktime ${node.member.tickS}`]),
    ].join(' '),
  };
}

async function ctl(node: Node, args: string[]): Promise<string> {
  const { program, args: own, env } = ctlCommand(node);
  const { stdout } = await runFile(program, [...own, ...args], {
    cwd: node.dir,
    env,
    timeout: CTL_TIMEOUT_MS,
  });
  return stdout;
}

function ctlCommand({ dir, programs, name, distributionPort }: Node): CtlCommand {
  return {
    program: join(programs, 'rabbitmqctl'),
    args: ['--node', name],
    env: {
      ...ownEnvironment(dir),
      RABBITMQ_CTL_ERL_ARGS: [...withoutEpmd(distributionPort), '-dist_listen false'].join(' '),
    },
  };
}

/** The port is given, so that no epmd is asked for it: one would outlive us, or be shared with others. */
function withoutEpmd(distributionPort: number): string[] {
  return ['-start_epmd false', `-erl_epmd_port ${distributionPort}`];
}

/** Without the caller's RABBITMQ_… and ERL_… variables. The cookie is in HOME. */
function ownEnvironment(dir: string): NodeJS.ProcessEnv {
  const usual = ['/usr/local/bin', '/usr/bin', '/bin', '/usr/local/sbin', '/usr/sbin', '/sbin'];
  return {
    PATH: [process.env['PATH'] ?? '', ...usual].join(delimiter),
    HOME: dir,
    // Every minute RabbitMQ looks for an epmd and, if there is none, starts one through an Erlang that reads these variables.
    // rabbitmqctl does so, too, when the folder of its own arguments is gone.
    ERL_EPMD_PORT: NO_EPMD_PORT,
    ERL_ZFLAGS: '-start_epmd false',
    ERL_INETRC: join(dir, HOSTS_FILE),
    XDG_CONFIG_HOME: dir,
    LANG: 'C.UTF-8',
    RABBITMQ_CONF_ENV_FILE: join(dir, 'env.conf'),
    ERL_CRASH_DUMP_SECONDS: '0',
  };
}

/** Waits for the node of a killed run, which its guard ends. */
async function waitForPredecessor(dir: string, name: string): Promise<void> {
  const file = join(dir, 'pid');
  if (!existsSync(file)) return;
  const pid = readFileSync(file, 'utf8');
  const deadlineMs = performance.now() + ENDING.graceMs;
  for (;;) {
    const { stdout } = await runFile('ps', ['-p', pid, '-o', 'args=']).catch(() => ({ stdout: '' }));
    if (!stdout.includes(name)) return;
    if (performance.now() > deadlineMs)
      throw new Error(`a RabbitMQ is running in ${dir} already (process ${pid})`);
    await sleep(100);
  }
}

async function waitUntilUp(server: Guarded, node: Node): Promise<void> {
  const deadlineMs = performance.now() + START_TIMEOUT_MS;
  const complaint = (what: string) => `RabbitMQ ${what}:\n${lastLines(join(node.dir, 'output.log'), 20)}`;
  while (!(await answers(node.port))) {
    if (server.hasExited()) throw new Error(complaint('did not start'));
    if (performance.now() > deadlineMs) throw new Error(complaint('did not answer in time'));
    await sleep(POLL_MS);
  }
  const connection = await connect(urlOf(node), { timeout: 10_000 });
  await connection.close();
  if (server.hasExited()) throw new Error(complaint('did not start'));
}

function urlOf({ password, port }: Node): string {
  return `amqp://${USER}:${password}@127.0.0.1:${port}`;
}
