// The proxies of deploy/, with the files as they stand there: only addresses, the certificate and the place of logs are a test's own,
// by what docs/deploy.md names for each. They run as another account than root.

import { closeSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { accountFor, giveTo } from '../../scripts/services/account.ts';
import { lastLines, makeThrowAwayFolder } from '../../scripts/services/folders.ts';
import { createGuard } from '../../scripts/services/guard.ts';
import { answers, findFreePort } from '../../scripts/services/ports.ts';
import { selfSignedCertificate } from './certificate.ts';
import { until } from './until.ts';

export type DeployedProxy = AsyncDisposable & {
  /** `https://127.0.0.1:<port>` */
  readonly url: string;
  /** What a sender has to trust. */
  readonly ca: string;
  /** The file in which `ca` is. */
  readonly caFile: string;
  /** All that it logged so far, of requests and of itself. */
  readonly log: () => string;
};

type Setting = {
  readonly folder: string;
  readonly port: number;
  /** `127.0.0.1:<port>` of each. */
  readonly replicas: readonly [string, string];
};

type Start = { readonly args: readonly string[]; readonly env?: Readonly<Record<string, string>> };

export const PROXIES = {
  nginx: { program: process.env['TEST_NGINX'], start: startOfNginx },
  haproxy: { program: process.env['TEST_HAPROXY'], start: startOfHaproxy },
  caddy: { program: process.env['TEST_CADDY'], start: startOfCaddy },
} as const;

export type ProxyName = keyof typeof PROXIES;

export const PROXY_NAMES = Object.keys(PROXIES) as ProxyName[];

/** The file that a reader copies. */
export const deployed = (path: string): string =>
  fileURLToPath(new URL(`../../deploy/${path}`, import.meta.url));

export async function startDeployedProxy(
  name: ProxyName,
  replicas: readonly [string, string],
): Promise<DeployedProxy> {
  const { program = name, start } = PROXIES[name];
  const guard = createGuard();
  const folder = makeThrowAwayFolder(guard);
  const account = accountFor(folder);
  giveTo(account, folder);
  const { cert, key } = selfSignedCertificate({ days: 90 });
  const caFile = join(folder, 'tls.crt');
  for (const [file, text] of [
    ['tls.crt', cert],
    ['tls.key', key],
  ] as const) {
    writeFileSync(join(folder, file), text, { mode: 0o600 });
    giveTo(account, join(folder, file));
  }
  const port = await findFreePort();
  const { args, env = {} } = await start({ folder, port, replicas });
  const outputFile = join(folder, 'output.log');
  const output = openSync(outputFile, 'a', 0o600);
  const proxy = guard.spawn(program, args, {
    cwd: folder,
    env: { PATH: process.env['PATH'], HOME: folder, ...env },
    account,
    ending: { signal: 'SIGTERM', graceMs: 2_000 },
    output,
  });
  closeSync(output);
  await until(
    `${name} listens`,
    async () => {
      if (proxy.hasExited()) throw new Error(`${name} did not start:\n${lastLines(outputFile, 10)}`);
      return (await answers(port)) ? true : undefined;
    },
    { limitMs: 20_000 },
  );
  return {
    url: `https://127.0.0.1:${port}`,
    ca: cert,
    caFile,
    log: () =>
      readdirSync(folder)
        .filter((file) => file.endsWith('.log'))
        .map((file) => readFileSync(join(folder, file), 'utf8'))
        .join(''),
    [Symbol.asyncDispose]: guard.close,
  };
}

/** `text` with the values of a test; each must be there. */
function fill(text: string, values: Readonly<Record<string, string>>): string {
  return Object.entries(values).reduce((filled, [value, other]) => {
    if (!filled.includes(value)) throw new Error(`${value} is not in the file`);
    return filled.replaceAll(value, other);
  }, text);
}

/** What a distribution's nginx.conf has around the file. */
function startOfNginx({ folder, port, replicas }: Setting): Start {
  const site = fill(readFileSync(deployed('nginx/tallyhook.conf'), 'utf8'), {
    '10.0.0.11:8080': replicas[0],
    '10.0.0.12:8080': replicas[1],
    'listen 443 ssl;': `listen 127.0.0.1:${port} ssl;`,
    'hooks.example.com': '127.0.0.1',
    '/etc/ssl/tallyhook': folder,
    '/var/log/nginx': folder,
  });
  writeFileSync(join(folder, 'tallyhook.conf'), site);
  const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  writeFileSync(
    join(folder, 'nginx.conf'),
    `daemon off;
pid ${folder}/nginx.pid;
worker_processes 2;
events { worker_connections 1024; }
http {
${places.map((place) => `  ${place}_temp_path ${folder}/${place};\n`).join('')}
  include ${folder}/tallyhook.conf;
}
`,
  );
  return { args: ['-p', folder, '-e', join(folder, 'error.log'), '-c', join(folder, 'nginx.conf')] };
}

function startOfHaproxy({ folder, port, replicas: [one, two] }: Setting): Start {
  writeFileSync(join(folder, 'tallyhook.cfg'), readFileSync(deployed('haproxy/tallyhook.cfg')));
  return {
    args: ['-f', join(folder, 'tallyhook.cfg')],
    env: {
      LISTEN: `127.0.0.1:${port}`,
      CERTIFICATE: join(folder, 'tls.crt'),
      REPLICA_1: one,
      REPLICA_2: two,
    },
  };
}

async function startOfCaddy({ folder, port, replicas: [one, two] }: Setting): Promise<Start> {
  writeFileSync(join(folder, 'Caddyfile'), readFileSync(deployed('caddy/Caddyfile')));
  return {
    args: ['run', '--config', join(folder, 'Caddyfile'), '--adapter', 'caddyfile'],
    env: {
      CADDY_ADMIN: `127.0.0.1:${await findFreePort()}`,
      SITE: `127.0.0.1:${port}`,
      CERTIFICATE: join(folder, 'tls.crt'),
      CERTIFICATE_KEY: join(folder, 'tls.key'),
      LOG: join(folder, 'access.log'),
      REPLICA_1: one,
      REPLICA_2: two,
    },
  };
}
