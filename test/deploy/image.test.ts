// The image as docs/deploy.md has it built and run: by buildah on a base of the test's own, which is Node and its libraries and nothing
// else, and by podman in a storage of its own, on real servers.

import { execFile } from 'node:child_process';
import {
  closeSync,
  copyFileSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ROOT } from '../../scripts/relay.ts';
import { makeThrowAwayFolder, roomInMemory } from '../../scripts/services/folders.ts';
import { createGuard } from '../../scripts/services/guard.ts';
import { findFreePort } from '../../scripts/services/ports.ts';
import { amqpUrl, listen, newExchange } from '../support/bus.ts';
import { commandsUnder } from '../support/deploy-page.ts';
import { patience } from '../support/patience.ts';
import { openRaw, rawPost } from '../support/raw-http.ts';
import { untilReady } from '../support/replica.ts';
import { createRoles } from '../support/roles.ts';
import { completed, deliver, newJobId, SECRET, sign } from '../support/sender.ts';
import { until } from '../support/until.ts';

const { TEST_BUILDAH: buildah, TEST_PODMAN: podman } = process.env;
/** Without root both need ranges of user ids that an administrator has given to the account. */
const cannotRun = !buildah || !podman || process.getuid?.() !== 0;

const MB = 1_000_000;
const BASE = 'localhost/node-alone';
const IMAGE = 'tallyhook:0.1.0';
/** Its base, itself, and a container of each step, which are whole copies. */
const ROOM_BYTES = 1_500 * MB;
const BUILD_MS = patience(60_000);
const guard = createGuard();

let folder: string;
let env: NodeJS.ProcessEnv;

/** In the folder, by the shell, as a reader pastes it. @returns what it printed. @throws Error if it fails */
async function sh(
  commands: string,
  { cwd = folder, ...variables }: Record<string, string> = {},
): Promise<string> {
  const options = { cwd, env: { ...env, ...variables }, timeout: patience(60_000), maxBuffer: 64 * MB };
  const { stdout } = await promisify(execFile)('sh', ['-euc', commands], options);
  return stdout.trim();
}

const inspect = async <T>(what: 'image' | 'container', name: string, format: string) =>
  JSON.parse(await sh(`podman ${what} inspect --format '{{json ${format}}}' ${name}`)) as T;

beforeAll(async () => {
  if (cannotRun) return;
  folder = makeThrowAwayFolder(guard, roomInMemory(ROOM_BYTES));
  env = {
    ...process.env,
    PATH: [dirname(buildah), dirname(podman), process.env['PATH']].join(delimiter),
    CONTAINERS_STORAGE_CONF: join(folder, 'storage.conf'),
    CONTAINERS_CONF: join(folder, 'containers.conf'),
    BASE,
    OUT: folder,
  };
  writeSettings();
  await buildBase();
  await sh(commandsUnder('The image').join('\n'), { cwd: ROOT });
}, 2 * BUILD_MS);

afterAll(() => guard.close());

/** What a host's own settings say of storage, and what is not to be had inside another container. */
function writeSettings(): void {
  writeFileSync(
    join(folder, 'storage.conf'),
    `[storage]\ndriver = "vfs"\ngraphroot = "${folder}/images"\nrunroot = "${folder}/run"\n`,
  );
  writeFileSync(
    join(folder, 'containers.conf'),
    `[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
`,
  );
}

/** From nothing: this Node, and the libraries that it is linked with. No shell, no account, no folder to write in. */
async function buildBase(): Promise<void> {
  const libraries = (await sh(`ldd ${process.execPath}`)).matchAll(/\/\S+/g);
  for (const [library] of libraries) copyInto('base', library, library);
  copyInto('base', process.execPath, '/usr/local/bin/node');
  writeFileSync(join(folder, 'Base'), 'FROM scratch\nENV PATH=/usr/local/bin\nCOPY . /\n');
  await sh(`buildah bud --isolation=chroot --tag=${BASE} --file=Base base`);
}

function copyInto(root: string, from: string, to: string): void {
  mkdirSync(join(folder, root, dirname(to)), { recursive: true });
  copyFileSync(from, join(folder, root, to));
}

describe.skipIf(cannotRun)('the image', () => {
  test('adds at most 40 MB to its base, in layers of its own', async () => {
    const [whole, base] = [await sizeOf(IMAGE), await sizeOf(BASE)];
    expect(whole.layers.slice(0, base.layers.length)).toEqual(base.layers);
    expect(whole.bytes - base.bytes).toBeLessThan(40 * MB);
  });

  test('says what it is, of which version and commit, and on which base', async () => {
    const own = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Record<string, string>;
    const commit = await sh('git rev-parse HEAD', { cwd: ROOT });
    const name = 'org.opencontainers.image';
    expect(await inspect('image', IMAGE, '.Labels')).toMatchObject({
      [`${name}.title`]: own['name'],
      [`${name}.description`]: own['description'],
      [`${name}.version`]: own['version'],
      [`${name}.licenses`]: own['license'],
      [`${name}.revision`]: expect.stringMatching(new RegExp(`^${commit}(-dirty)?$`)) as string,
    });
    expect(await inspect('image', IMAGE, '.Annotations')).toMatchObject({
      [`${name}.base.name`]: `${BASE}:latest`,
      [`${name}.base.digest`]: expect.stringMatching(/^sha256:/) as string,
    });
  });

  test('has the packages of its bill of materials, and no others', async () => {
    const bill = JSON.parse(readFileSync(join(folder, 'tallyhook-0.1.0.cdx.json'), 'utf8')) as {
      components: readonly { purl: string }[];
    };
    const billed = bill.components.map(({ purl }) => decodeURIComponent(purl).slice('pkg:npm/'.length));
    const installed = await sh(`podman run --rm --entrypoint node ${IMAGE} --print '${PACKAGES}'`);
    expect(billed.toSorted()).toEqual((JSON.parse(installed) as string[]).toSorted());
    expect(billed.length).toBeGreaterThan(100);
  });
});

/** Name and version of each package, as JSON: a program for the image's Node. */
const PACKAGES = `JSON.stringify(fs.globSync("/app/node_modules/**/package.json")
  .filter((path) => /node_modules\\/(@[^/]+\\/)?[^/]+\\/package\\.json$/.test(path))
  .map((path) => JSON.parse(fs.readFileSync(path, "utf8")))
  .map(({ name, version }) => name + "@" + version))`;

async function sizeOf(
  image: string,
): Promise<{ readonly bytes: number; readonly layers: readonly string[] }> {
  return {
    bytes: await inspect<number>('image', image, '.Size'),
    layers: await inspect<string[]>('image', image, '.RootFS.Layers'),
  };
}

test.skipIf(cannotRun)(
  'run as the page says, it migrates, becomes ready, relays a delivery, drains on SIGTERM, ends with 0 and has written nothing',
  async () => {
    await using roles = await createRoles();
    const exchange = newExchange();
    await using bus = await listen(exchange);
    const [port, operatorPort] = [await findFreePort(), await findFreePort()];
    writeFileSync(
      join(folder, 'tallyhook.env'),
      `${readFileSync(join(ROOT, 'deploy/image/tallyhook.env'), 'utf8')}
HOST=127.0.0.1
PORT=${port}
OPERATOR_PORT=${operatorPort}
AMQP_EXCHANGE=${exchange}
`,
    );
    endWithUs();
    await sh(commandsUnder('Run it with podman').join('\n'), {
      DATABASE_URL: roles.running.url,
      MIGRATION_DATABASE_URL: roles.migrating.url,
      AMQP_URL: amqpUrl(),
      SIGNING_SECRETS: SECRET,
    });
    const url = `http://127.0.0.1:${port}`;
    const readiness = async () => {
      const response = await fetch(`http://127.0.0.1:${operatorPort}/readyz`);
      return { status: response.status, body: (await response.json()) as Record<string, unknown> };
    };
    await untilReady({ readiness });

    const pid = await inspect<number>('container', 'tallyhook', '.State.Pid');
    expect(rightsOf(pid)).toEqual({
      Uid: '1000 1000 1000 1000',
      Gid: '1000 1000 1000 1000',
      CapInh: NONE,
      CapPrm: NONE,
      CapEff: NONE,
      CapBnd: NONE,
      CapAmb: NONE,
      NoNewPrivs: '1',
    });
    expect(writableMounts(pid)).toEqual(['/dev/shm']);
    // Its memory stays for as long as somebody has it open.
    const memory = openSync(`/proc/${pid}/root/dev/shm`, 'r');
    await until('it is healthy', () => sh(commandsUnder('Its health').join('\n')), { limitMs: 20_000 });

    const jobId = newJobId();
    expect(await deliver(`${url}/webhooks`, completed(jobId))).toMatchObject({ status: 202 });
    await bus.received(1);

    const last = JSON.stringify(completed(newJobId()));
    using sender = await openRaw(port);
    const request = rawPost(last, { 'X-Service-Signature': sign(last), 'Content-Type': 'application/json' });
    sender.write(request.slice(0, -10));
    const stopped = sh(commandsUnder('Stop it').join('\n'));
    await until(
      'it was asked to stop',
      async () => ((await logOf()).some(({ msg }) => msg === 'asked to stop') ? true : undefined),
      { limitMs: 20_000 },
    );
    sender.write(request.slice(-10));
    expect((await sender.replies())[0]).toMatchObject({ status: 202 });
    const [, exitCode, ...diff] = (await stopped).split('\n');
    await bus.received(2);
    expect(exitCode).toBe('0');
    expect(readdirSync(`/proc/self/fd/${memory}`)).toEqual([]);
    closeSync(memory);
    // podman's own: it names the user.
    expect(diff.toSorted()).toEqual(['A /etc', 'A /etc/group', 'A /etc/passwd', 'tallyhook']);
  },
  3 * BUILD_MS,
);

const NONE = '0'.repeat(16);

/** Of a process, as the kernel has them. */
function rightsOf(pid: number): Record<string, string> {
  const lines = readFileSync(`/proc/${pid}/status`, 'utf8').matchAll(
    /^(Uid|Gid|Cap\w+|NoNewPrivs):\t(.*)$/gm,
  );
  return Object.fromEntries(
    [...lines].map(([, name = '', value = '']) => [name, value.replaceAll('\t', ' ')]),
  );
}

/** Where files can be made by an account that is not root: not what the kernel shows of itself, and no folder of devices. */
const writableMounts = (pid: number) =>
  [...readFileSync(`/proc/${pid}/mounts`, 'utf8').matchAll(/^\S+ (\S+) \S+ rw\b/gm)]
    .map(([, path = '']) => path)
    .filter(
      (path) => (statSync(`/proc/${pid}/root${path}`).mode & 0o002) !== 0 && !MADE_BY_KERNEL.test(path),
    );

const MADE_BY_KERNEL = /^\/(?:proc|sys|dev\/(?:mqueue|pts))\b/;

async function logOf(): Promise<{ msg: string; level: number }[]> {
  const lines = await sh('podman logs tallyhook');
  return lines.split('\n').map((line) => JSON.parse(line) as { msg: string; level: number });
}

/** If this run is ended, so are its containers. */
function endWithUs(): void {
  const log = openSync(join(folder, 'end.log'), 'w', 0o600);
  const commands = 'trap "podman rm --all --force --time 0; exit" TERM; sleep 1000 & wait';
  const ending = { signal: 'SIGTERM', graceMs: 20_000 } as const;
  guard.spawn('sh', ['-c', commands], { cwd: folder, env, ending, output: log });
  closeSync(log);
}
