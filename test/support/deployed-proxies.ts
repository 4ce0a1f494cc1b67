// The proxies of deploy/, set up by the commands of docs/deploy.md. Only the values that its reader puts in are a test's own: port,
// name, certificate, replicas, and places of logs.

import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { lastLines, makeThrowAwayFolder } from '../../scripts/services/folders.ts';
import { createGuard } from '../../scripts/services/guard.ts';
import { answers, findFreePort } from '../../scripts/services/ports.ts';
import { selfSignedCertificate } from './certificate.ts';
import { runCommandsUnder } from './deploy-commands.ts';
import { until } from './until.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

const deployed = (path: string) => join(ROOT, 'deploy', path);

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

/** `args` start it once the commands under `heading` have run. `folder` is its own. */
export const PROXIES = {
  nginx: {
    heading: 'nginx',
    program: process.env['TEST_NGINX'],
    args: (folder: string) => [
      '-p',
      folder,
      '-e',
      join(folder, 'error.log'),
      '-c',
      join(folder, 'nginx.conf'),
    ],
  },
  haproxy: {
    heading: 'HAProxy',
    program: process.env['TEST_HAPROXY'],
    args: () => ['-f', deployed('haproxy/tallyhook.cfg')],
  },
  caddy: {
    heading: 'Caddy',
    program: process.env['TEST_CADDY'],
    args: () => ['run', '--config', deployed('caddy/Caddyfile')],
  },
} as const;

export type ProxyName = keyof typeof PROXIES;

export async function startDeployedProxy(
  name: ProxyName,
  replicas: readonly [string, string],
): Promise<DeployedProxy> {
  const { heading, program = name, args } = PROXIES[name];
  const guard = createGuard();
  const folder = makeThrowAwayFolder(guard);
  const port = await findFreePort();
  const { cert, key } = selfSignedCertificate({ days: 90 });
  const [CERTIFICATE, CERTIFICATE_KEY] = [join(folder, 'tls.crt'), join(folder, 'tls.key')];
  writeFileSync(CERTIFICATE, cert);
  writeFileSync(CERTIFICATE_KEY, key, { mode: 0o600 });
  mkdirSync(join(folder, 'conf.d'));
  writeFileSync(join(folder, 'nginx.conf'), nginxConfOf(folder));
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: folder,
    SITE: '127.0.0.1',
    LISTEN: String(port),
    CERTIFICATE,
    CERTIFICATE_KEY,
    REPLICA_1: replicas[0],
    REPLICA_2: replicas[1],
    NGINX_DIR: folder,
    LOG: join(folder, 'access.log'),
    CADDY_ADMIN: `127.0.0.1:${await findFreePort()}`,
  };
  await runCommandsUnder(heading, { ...env, PATH: `${dirname(program)}:${env.PATH}` });
  const outputFile = join(folder, 'output.log');
  const output = openSync(outputFile, 'a', 0o600);
  const proxy = guard.spawn(program, args(folder), {
    cwd: folder,
    env,
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
    caFile: CERTIFICATE,
    log: () =>
      readdirSync(folder)
        .filter((file) => file.endsWith('.log'))
        .map((file) => readFileSync(join(folder, file), 'utf8'))
        .join(''),
    [Symbol.asyncDispose]: guard.close,
  };
}

/** What a distribution's nginx.conf has around the file. */
function nginxConfOf(folder: string): string {
  const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  return `daemon off;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log;
worker_processes 2;
events { worker_connections 1024; }
http {
  access_log ${folder}/access.log;
${places.map((place) => `  ${place}_temp_path ${folder}/${place};\n`).join('')}  include ${folder}/conf.d/*.conf;
}
`;
}
