// docs/deploy.md on Kubernetes, as far as it goes without a cluster: its commands as they stand there, what `kubectl kustomize` makes,
// and the containers' commands as processes, with the variables and files that the manifests give them.

import { execFile } from 'node:child_process';
import { appendFileSync, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createHmac } from 'node:crypto';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { SESSIONS } from '../../scripts/manifests/scaling.ts';
import { ROOT } from '../../scripts/relay.ts';
import { findFreePort } from '../../scripts/services/ports.ts';
import { IS_SHORT_RUN } from '../only-in-all.ts';
import { amqpUrl, UNHEARD } from '../support/bus.ts';
import { commandsUnder } from '../support/deploy-page.ts';
import { ANSWER_DEADLINE_MS, promisedMs } from '../support/patience.ts';
import { createFolder, type TestFolder } from '../support/folder.ts';
import {
  environmentOf,
  holdsPromises,
  type Manifests,
  readManifests,
  secretOf,
} from '../support/manifests.ts';
import { INHERITED, NO_LOCAL_RUN, startProcess } from '../support/replica.ts';
import { createRoles } from '../support/roles.ts';
import { completed, newJobId } from '../support/sender.ts';
import { fetchAfresh } from '../support/requests.ts';
import { until } from '../support/until.ts';

const KUBECTL = process.env['TEST_KUBECTL'] ?? '';
const run = promisify(execFile);

/** A copy of the manifests, as in a clone, and the reader's shell there. */
async function createCopy(variables: Record<string, string>) {
  const folder = await createFolder();
  const manifests = folder.path('deploy/kubernetes');
  cpSync(join(ROOT, 'deploy/kubernetes'), manifests, {
    recursive: true,
    filter: (path) => !path.endsWith('/secrets'),
  });
  mkdirSync(folder.path('bin'));
  const env = {
    ...INHERITED,
    ...variables,
    PATH: `${folder.path('bin')}:${dirname(process.execPath)}:${INHERITED['PATH']}`,
    HOME: folder.path('.'), // kubectl keeps files there
  };
  const shell = async (script: string) =>
    (await run('bash', ['-ec', `set -o pipefail\n${script}`], { cwd: folder.path('.'), env })).stdout;
  return {
    ...folder,
    shell,
    example: join(manifests, 'example'),
    kustomize: async () =>
      readManifests((await run(KUBECTL, ['kustomize', join(manifests, 'example')], { env })).stdout),
  };
}

const FROM_READER = {
  DATABASE_URL: 'postgres://run:x@postgres/tallyhook',
  MIGRATION_DATABASE_URL: 'postgres://migrate:x@postgres/tallyhook',
  AMQP_URL: 'amqp://tallyhook:x@rabbitmq',
};

const writeSecrets = () => commandsUnder('Fill in the example').join('\n');

describe.skipIf(!KUBECTL).each(['ingress.yaml', 'http-route.yaml'])(
  'what kubectl makes of the example with %s',
  (way) => {
    let manifests: Manifests;

    beforeAll(async () => {
      await using copy = await createCopy(FROM_READER);
      await copy.shell(writeSecrets());
      const path = join(copy.example, 'kustomization.yaml');
      const text = readFileSync(path, 'utf8');
      writeFileSync(path, text.replace('- ingress.yaml', `- ${way}`));
      manifests = await copy.kustomize();
    });

    holdsPromises(() => manifests);

    test('all is in one namespace, with the image of the overlay’s registry', () => {
      const { objects, only } = manifests;
      const outside = objects.filter(({ metadata }) => !('namespace' in metadata));
      expect(outside).toEqual([only('Namespace')]);
      expect(JSON.stringify(only('Deployment'))).toContain('"image":"registry.example.com/tallyhook:');
    });

    test('the intake’s port is open to the ingress controller alone, whose addresses are believed', () => {
      const { ingress } = manifests.only('NetworkPolicy').spec ?? {};
      expect(ingress?.[0]?.from).toEqual([
        { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'ingress-nginx' } } },
      ]);
      expect(environmentOf(manifests, 'Deployment').settings).toHaveProperty('TRUSTED_PROXIES');
    });
  },
);

/** The container's arguments and environment as a process gets them here, with the pod's secrets in a folder. */
function unpack(manifests: Manifests, owner: 'Deployment' | 'Job', folder: TestFolder) {
  const { mount, secret } = secretOf(manifests, owner);
  mkdirSync(folder.path(owner), { recursive: true });
  for (const [key, value] of Object.entries(secret?.data ?? {}))
    writeFileSync(join(folder.path(owner), key), Buffer.from(value, 'base64'), { mode: 0o600 });
  const { settings, files } = environmentOf(manifests, owner);
  const moved = Object.entries(files).map(
    ([name, path]) => [name, path.replace(mount?.mountPath ?? '', folder.path(owner))] as const,
  );
  const container = manifests.only(owner).spec?.template.spec?.containers[0];
  return { container, env: { ...settings, ...Object.fromEntries(moved) } };
}

/** For `env`, of a process that has nothing else. */
const assignments = (of: Record<string, string>) =>
  Object.entries({ ...INHERITED, ...NO_LOCAL_RUN, ...of })
    .map(([name, value]) => `${name}='${value}'`)
    .concat('PATH="$PATH"')
    .join(' ');

/**
 * In the place of a cluster: `apply` builds what it would apply, `wait` runs the migration, `exec` runs the command as the service's
 * container would. Each call is written down.
 */
function writeStandIn(
  folder: TestFolder,
  env: { readonly Deployment: Record<string, string>; readonly Job: Record<string, string> },
): void {
  const script = `#!/bin/sh
printf '%s\\n' "$*" >> '${folder.path('calls')}'
case "$*" in
  kustomize*) exec '${KUBECTL}' "$@" ;;
  apply\\ -k*) exec '${KUBECTL}' kustomize "$3" ;;
  *\\ wait\\ *) cd '${ROOT}' && exec env -i ${assignments(env.Job)} node src/main.ts migrate ;;
  *\\ exec\\ *) while [ "$1" != -- ]; do shift; done; shift
    cd '${ROOT}' && exec env -i ${assignments(env.Deployment)} "$@" ;;
  *\\ create\\ *) exec '${KUBECTL}' "$@" --dry-run=client -o yaml ;;
esac
`;
  writeFileSync(folder.path('bin/kubectl'), script, { mode: 0o755 });
}

/** The service's container as a process on ports of its own, asked at the ports and paths that the manifests name. */
async function startContainer(manifests: Manifests, folder: TestFolder) {
  const { container, env } = unpack(manifests, 'Deployment', folder);
  const ports: Record<string, number> = { intake: await findFreePort(), operators: await findFreePort() };
  const service = startProcess(container?.args ?? [], {
    env: {
      ...env,
      HOST: '127.0.0.1',
      OPERATOR_HOST: '127.0.0.1',
      PORT: String(ports['intake']),
      OPERATOR_PORT: String(ports['operators']),
      ANSWER_DEADLINE_MS,
    },
  });
  const ask = (port: unknown, path: unknown, init?: Parameters<typeof fetchAfresh>[1]) =>
    fetchAfresh(`http://127.0.0.1:${ports[String(port)]}${String(path)}`, init);
  return {
    env,
    ask,
    service,
    probe: async (kind: 'startupProbe' | 'livenessProbe' | 'readinessProbe') => {
      const { port, path } = container?.[kind]?.httpGet ?? {};
      return (await ask(port, path)).status;
    },
    /** A delivery, signed with the secret that the page made. */
    deliver: () => {
      const secret = readFileSync(join(folder.path('Deployment'), 'signing-secrets'), 'utf8').trim();
      const body = JSON.stringify(completed(newJobId()));
      const signature = createHmac('sha256', secret).update(body).digest('hex');
      const headers = { 'X-Service-Signature': `sha256=${signature}` };
      return ask('intake', '/webhooks', { method: 'POST', body, headers });
    },
    [Symbol.asyncDispose]: service[Symbol.asyncDispose],
  };
}

test.skipIf(!KUBECTL || IS_SHORT_RUN)(
  'the page leads to a service that Kubernetes finds alive and ready, that takes a delivery, is scraped, and ends in its time',
  async () => {
    await using roles = await createRoles();
    await using copy = await createCopy({
      DATABASE_URL: roles.running.url,
      MIGRATION_DATABASE_URL: roles.migrating.url,
      AMQP_URL: amqpUrl(),
    });
    appendFileSync(join(copy.example, 'settings.env'), `AMQP_EXCHANGE=${UNHEARD}\n`);
    await copy.shell(writeSecrets());
    const manifests = await copy.kustomize();
    const migration = unpack(manifests, 'Job', copy);
    expect(migration.container?.args).toEqual(['migrate']);

    // A replica that comes before the migration starts again and again, and never becomes ready.
    await using early = await startContainer(manifests, copy);
    expect((await early.service.exited).code).toBe(78);

    writeStandIn(copy, { Deployment: early.env, Job: migration.env });
    expect(await copy.shell(commandsUnder('Migrate and roll out').join('\n'))).toContain('migrated: ');

    await using pod = await startContainer(manifests, copy);
    for (const kind of ['startupProbe', 'livenessProbe', 'readinessProbe'] as const)
      await until(kind, async () => ((await pod.probe(kind)) === 200 ? true : undefined), {
        limitMs: 20_000,
      });
    expect((await pod.deliver()).status).toBe(202);

    const scraped = await scrape(
      manifests,
      pod.ask,
      await copy.shell(commandsUnder('Look at it').join('\n')),
    );
    const sessions = Number(/^tallyhook_database_sessions_max (\d+)$/m.exec(scraped)?.[1]);
    expect(sessions).toBe(SESSIONS - 1); // and one for moments

    const stoppedMs = performance.now();
    pod.service.child.kill('SIGTERM');
    await until(
      'it is not ready',
      async () => ((await pod.probe('readinessProbe')) === 503 ? true : undefined),
      { limitMs: 5_000 },
    );
    const late = await pod.deliver();
    expect([late.status, late.headers.get('connection')]).toEqual([202, 'close']);
    expect(await pod.service.exited).toEqual({ code: 0, signal: null });
    const graceS = manifests.only('Deployment').spec?.template.spec?.terminationGracePeriodSeconds ?? 0;
    expect(performance.now() - stoppedMs).toBeLessThan(promisedMs(graceS * 1_000));

    expectNamed(readFileSync(copy.path('calls'), 'utf8').trimEnd().split('\n'), manifests);
  },
);

/** What the ServiceMonitor's endpoint answers to the token in the Secret that was made for it. */
async function scrape(
  manifests: Manifests,
  ask: (
    port: unknown,
    path: unknown,
    init: { headers: Record<string, string> },
  ) => ReturnType<typeof fetchAfresh>,
  madeSecret: string,
): Promise<string> {
  const { metadata, data } = parse(madeSecret) as { metadata: unknown; data: Record<string, string> };
  const [endpoint] = manifests.only('ServiceMonitor').spec.endpoints;
  const { name, key = '' } = endpoint?.authorization?.credentials ?? {};
  expect(metadata).toMatchObject({ name, namespace: 'tallyhook' });
  const token = Buffer.from(data[key] ?? '', 'base64').toString();
  const headers = { Authorization: `Bearer ${token}` };
  return until(
    'the metrics are scraped',
    async () => {
      const answer = await ask(endpoint?.port, endpoint?.path, { headers });
      const text = await answer.text();
      if (answer.status === 200) return text;
      throw new Error(`${answer.status} ${text}`);
    },
    { limitMs: 5_000 },
  );
}

/** What a command names is there, in the namespace that it names; and the first `apply` leaves out the Deployment alone. */
function expectNamed(calls: readonly string[], { objects }: Manifests): void {
  expect(calls.filter((call) => call.startsWith('apply'))).toEqual([
    'apply -k deploy/kubernetes/example -l app.kubernetes.io/component!=service',
    'apply -k deploy/kubernetes/example',
  ]);
  const names = objects.map(({ kind, metadata }) => `${kind.toLowerCase()}/${metadata.name}`);
  const named = calls.flatMap((call) => call.match(/\b(?:job|deployment|service)\/[\w-]+/g) ?? []);
  expect(named).toHaveLength(4);
  for (const name of named) expect(names).toContain(name);
  for (const call of calls.filter((each) => each.includes('-n '))) expect(call).toMatch(/^-n tallyhook /);
  const left = objects.filter(
    ({ metadata }) => metadata.labels?.['app.kubernetes.io/component'] === 'service',
  );
  expect(left.map(({ kind }) => kind)).toEqual(['Deployment']);
}
