// The manifests of deploy/kubernetes as a cluster gets them, and all that is promised of them: as tests, which hold for the files
// themselves and for what `kubectl kustomize` makes of them.

import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { IPrometheusRule } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PrometheusRule';
import type { IServiceMonitor } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/ServiceMonitor';
import type { IHTTPRoute } from '@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1/HTTPRoute';
import type { IDeployment } from 'kubernetes-models/apps/v1/Deployment';
import type { IHorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2/HorizontalPodAutoscaler';
import type { IJob } from 'kubernetes-models/batch/v1/Job';
import type { IIngress } from 'kubernetes-models/networking.k8s.io/v1/Ingress';
import type { INetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1/NetworkPolicy';
import type { IPodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget';
import type { IConfigMap } from 'kubernetes-models/v1/ConfigMap';
import type { INamespace } from 'kubernetes-models/v1/Namespace';
import type { IPodSpec } from 'kubernetes-models/v1/PodSpec';
import type { ISecret } from 'kubernetes-models/v1/Secret';
import type { IService } from 'kubernetes-models/v1/Service';
import { expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { MANIFESTS, validate } from '../../scripts/manifests/files.ts';
import {
  FOR_OTHERS,
  MAX_CONNECTIONS,
  MIGRATION_SESSIONS,
  PODS_BESIDE,
  SESSIONS,
} from '../../scripts/manifests/scaling.ts';
import { version } from '../../src/base/version.ts';
import { loadConfig, secretVariables, variables } from '../../src/config.ts';
import { SECRET } from './sender.ts';

type Kinds = {
  ConfigMap: IConfigMap;
  Deployment: IDeployment;
  HorizontalPodAutoscaler: IHorizontalPodAutoscaler;
  HTTPRoute: IHTTPRoute;
  Ingress: IIngress;
  Job: IJob;
  Namespace: INamespace;
  NetworkPolicy: INetworkPolicy;
  PodDisruptionBudget: IPodDisruptionBudget;
  PrometheusRule: IPrometheusRule;
  Secret: ISecret;
  Service: IService;
  ServiceMonitor: IServiceMonitor;
};

type Labels = Readonly<Record<string, string>>;
export type Manifest = { readonly kind: string; readonly metadata: { name: string; labels?: Labels } };
export type Manifests = {
  readonly objects: readonly Manifest[];
  readonly all: <Kind extends keyof Kinds>(kind: Kind) => Kinds[Kind][];
  /** @throws unless there is exactly one */
  readonly only: <Kind extends keyof Kinds>(kind: Kind) => Kinds[Kind];
};

/** Of the text of all documents. */
export function readManifests(text: string): Manifests {
  const objects = parseAllDocuments(text).map((document) => document.toJS() as Manifest);
  const all = <Kind extends keyof Kinds>(kind: Kind) =>
    objects.filter((object) => object.kind === kind) as unknown as Kinds[Kind][];
  return {
    objects,
    all,
    only: (kind) => {
      const [found, ...others] = all(kind);
      if (found === undefined || others.length > 0)
        throw new Error(`not one ${kind}, but ${all(kind).length}`);
      return found;
    },
  };
}

const read = (path: string) => readFileSync(join(MANIFESTS, path), 'utf8');

type Kustomization = {
  readonly resources: readonly string[];
  readonly configMapGenerator: readonly { name: string; envs: readonly string[] }[];
  readonly secretGenerator?: readonly { name: string; files: readonly string[] }[];
};

/**
 * The files of the example and its base, and what their generators name, with values that are made up. `kubectl kustomize` does more:
 * patches, the namespace, the image's name.
 */
export function manifestsOfFiles(): Manifests {
  const folders = ['base', 'example'].map((folder) => ({
    folder,
    kustomization: parse(read(`${folder}/kustomization.yaml`)) as Kustomization,
  }));
  const files = folders.flatMap(({ folder, kustomization }) =>
    kustomization.resources.filter((name) => name.endsWith('.yaml')).map((name) => read(`${folder}/${name}`)),
  );
  const settings = folders.flatMap(({ folder, kustomization }) =>
    kustomization.configMapGenerator.flatMap(({ envs }) => envs.map((name) => read(`${folder}/${name}`))),
  );
  const secrets = folders.flatMap(({ kustomization }) => kustomization.secretGenerator ?? []);
  const made = [
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'tallyhook' },
      data: Object.fromEntries(
        [...settings.join('\n').matchAll(/^(\w+)=(.*)$/gm)].map(([, ...pair]) => pair),
      ),
    },
    ...secrets.map(({ name, files: paths }) => ({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name },
      data: Object.fromEntries(paths.map((path) => [basename(path), ''])),
    })),
  ].map((object) => JSON.stringify(object));
  return readManifests([...files, ...made].join('\n---\n'));
}

const FITTING = {
  DATABASE_URL: 'postgres://host/name',
  AMQP_URL: 'amqp://host',
  SIGNING_SECRETS: SECRET,
} as const;

const podOf = ({ spec }: IDeployment | IJob): IPodSpec => spec?.template.spec as IPodSpec;
const containerOf = (owner: IDeployment | IJob) => podOf(owner).containers[0] as IPodSpec['containers'][0];
const podLabelsOf = ({ spec }: IDeployment | IJob): Labels => spec?.template.metadata?.labels ?? {};

const selects = (selector: Labels | undefined, labels: Labels | undefined) => {
  const wanted = Object.entries(selector ?? {});
  return wanted.length > 0 && wanted.every(([name, value]) => labels?.[name] === value);
};

/** The environment of the pod's container; `read` gives the content of a file of its secrets. */
export function environmentOf(
  { only, all }: Manifests,
  owner: 'Deployment' | 'Job',
): { readonly settings: Record<string, string>; readonly files: Record<string, string> } {
  const container = containerOf(only(owner));
  const settings = (container.envFrom ?? []).map(
    ({ configMapRef }) =>
      all('ConfigMap').find(({ metadata }) => metadata?.name === configMapRef?.name)?.data,
  );
  return {
    settings: Object.assign({}, ...settings) as Record<string, string>,
    files: Object.fromEntries((container.env ?? []).map(({ name, value = '' }) => [name, value])),
  };
}

/** The Secret of the pod, and where its files are. */
export function secretOf({ only, all }: Manifests, owner: 'Deployment' | 'Job') {
  const object = only(owner);
  const [volume] = podOf(object).volumes ?? [];
  const [mount] = containerOf(object).volumeMounts ?? [];
  const secret = all('Secret').find(({ metadata }) => metadata?.name === volume?.secret?.secretName);
  return { volume, mount, secret };
}

/** Tests of all that is promised of the manifests. */
export function holdsPromises(load: () => Manifests): void {
  const PODS = ['Deployment', 'Job'] as const;

  test('each value is one that its kind allows', () => {
    // The values of Secrets are not ours, and kustomize breaks long ones into lines, which their model does not know.
    const ours = load().objects.filter(({ kind }) => kind !== 'Secret');
    for (const object of ours) expect(() => validate(object)).not.toThrow();
  });

  test('a rollout takes no capacity away, and ends one pod at a time', () => {
    const { spec } = load().only('Deployment');
    expect(spec?.strategy).toEqual({
      type: 'RollingUpdate',
      rollingUpdate: { maxUnavailable: 0, maxSurge: 1 },
    });
    expect(spec?.minReadySeconds).toBeGreaterThanOrEqual(
      podOf(load().only('Deployment')).terminationGracePeriodSeconds ?? 0,
    );
  });

  test('there are two replicas at least, and a deployment does not undo what the autoscaler did', () => {
    const { only } = load();
    expect(only('HorizontalPodAutoscaler').spec?.minReplicas).toBeGreaterThanOrEqual(2);
    expect(only('Deployment').spec).not.toHaveProperty('replicas');
  });

  test('the autoscaler’s target is the Deployment, and so is what the budget, the Services and the policy select', () => {
    const { only, all } = load();
    const deployment = only('Deployment');
    const { apiVersion, kind, metadata } = deployment;
    expect(only('HorizontalPodAutoscaler').spec?.scaleTargetRef).toEqual({
      apiVersion,
      kind,
      name: metadata?.name,
    });
    const selectors = [
      deployment.spec?.selector.matchLabels,
      only('PodDisruptionBudget').spec?.selector?.matchLabels,
      only('NetworkPolicy').spec?.podSelector?.matchLabels,
      ...all('Service').map(({ spec }) => spec?.selector),
      ...(podOf(deployment).topologySpreadConstraints ?? []).map(
        ({ labelSelector }) => labelSelector?.matchLabels,
      ),
    ];
    expect(selectors).toHaveLength(7);
    for (const selector of selectors) {
      expect(selects(selector, podLabelsOf(deployment))).toBe(true);
      expect(selects(selector, podLabelsOf(only('Job')))).toBe(false);
    }
  });

  test('replicas are spread over nodes, and over zones where that is possible', () => {
    const constraints = podOf(load().only('Deployment')).topologySpreadConstraints ?? [];
    expect(
      constraints.map(({ topologyKey, maxSkew, whenUnsatisfiable }) => [
        topologyKey,
        maxSkew,
        whenUnsatisfiable,
      ]),
    ).toEqual([
      ['kubernetes.io/hostname', 1, 'DoNotSchedule'],
      ['topology.kubernetes.io/zone', 1, 'ScheduleAnyway'],
    ]);
  });

  test('a drained node takes one replica at a time, also while none is ready', () => {
    const { maxUnavailable, unhealthyPodEvictionPolicy } = load().only('PodDisruptionBudget').spec ?? {};
    expect({ maxUnavailable, unhealthyPodEvictionPolicy }).toEqual({
      maxUnavailable: 1,
      unhealthyPodEvictionPolicy: 'AlwaysAllow',
    });
  });

  test('startup, liveness and readiness are three probes, on a port that strangers cannot fill', () => {
    const { startupProbe, livenessProbe, readinessProbe, ports } = containerOf(load().only('Deployment'));
    const probes = [startupProbe, livenessProbe, readinessProbe];
    expect(probes.map((probe) => probe?.httpGet)).toEqual([
      { path: '/livez', port: 'operators' },
      { path: '/livez', port: 'operators' },
      { path: '/readyz', port: 'operators' },
    ]);
    expect(new Set(probes.map((probe) => JSON.stringify(probe))).size).toBe(3);
    expect(ports?.map(({ name }) => name)).toContain('operators');
    // A restart comes later than readiness has been taken away.
    const failingS = (probe: typeof livenessProbe) =>
      (probe?.periodSeconds ?? 0) * (probe?.failureThreshold ?? 0);
    expect(failingS(livenessProbe)).toBeGreaterThan(failingS(readinessProbe));
  });

  test('the container’s variables are the service’s, its ports are those on which it listens, and a probe reaches it', () => {
    const manifests = load();
    const { settings, files } = environmentOf(manifests, 'Deployment');
    const known = [...variables, ...secretVariables.map((name) => `${name}_FILE`)];
    for (const name of [...Object.keys(settings), ...Object.keys(files)]) expect(known).toContain(name);
    const { http, operator } = loadConfig({ ...settings, ...FITTING });
    expect(containerOf(manifests.only('Deployment')).ports).toEqual([
      { name: 'intake', containerPort: http.port },
      { name: 'operators', containerPort: operator.port },
    ]);
    expect([http.host, operator.host]).toEqual(['0.0.0.0', '0.0.0.0']);
  });

  test('a pod is given longer than its drain takes, and listens while proxies still send', () => {
    const manifests = load();
    const { settings } = environmentOf(manifests, 'Deployment');
    const { delayMs, graceMs } = loadConfig({ ...settings, ...FITTING }).shutdown;
    expect(delayMs).toBeGreaterThanOrEqual(10_000);
    // The service itself gives up 5 s after both.
    expect(podOf(manifests.only('Deployment')).terminationGracePeriodSeconds).toBeGreaterThan(
      (delayMs + graceMs + 5_000) / 1_000,
    );
  });

  test('a pod has the memory that docs/running.md asks for, and no limit of the processor', () => {
    const { resources } = containerOf(load().only('Deployment'));
    const page = readFileSync(new URL('../../docs/running.md', import.meta.url), 'utf8');
    expect(page).toContain('Give the process 1 GiB.');
    expect(resources).toEqual({
      requests: { cpu: expect.any(String) as string, memory: '1Gi' },
      limits: { memory: '1Gi' },
    });
  });

  test.each(PODS)(
    '%s: a user without rights, a root that cannot be written, no capability, no token',
    (kind) => {
      const { only, all } = load();
      const { securityContext, automountServiceAccountToken, enableServiceLinks, ...pod } = podOf(only(kind));
      expect(securityContext).toMatchObject({
        runAsNonRoot: true,
        runAsUser: 1000,
        seccompProfile: { type: 'RuntimeDefault' },
      });
      expect({ automountServiceAccountToken, enableServiceLinks }).toEqual({
        automountServiceAccountToken: false,
        enableServiceLinks: false,
      });
      expect(pod).not.toMatchObject({ hostNetwork: true });
      expect(containerOf(only(kind)).securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
      expect(pod.containers).toHaveLength(1);
      for (const { metadata } of all('Namespace'))
        expect(metadata?.labels).toEqual({ 'pod-security.kubernetes.io/enforce': 'restricted' });
    },
  );

  test.each(PODS)(
    '%s: secrets are files that its group may read, which the example has, and no variables',
    (kind) => {
      const manifests = load();
      const { volume, mount, secret } = secretOf(manifests, kind);
      const { settings, files } = environmentOf(manifests, kind);
      expect(volume?.secret?.defaultMode).toBe(0o440);
      expect(podOf(manifests.only(kind)).securityContext?.fsGroup).toBe(1000);
      expect(mount).toMatchObject({ name: volume?.name, readOnly: true });
      const keys = volume?.secret?.items?.map(({ key }) => key) ?? [];
      expect(Object.keys(secret?.data ?? {}).toSorted()).toEqual(keys.toSorted());
      expect(Object.values(files)).toEqual(
        volume?.secret?.items?.map(({ path }) => `${mount?.mountPath}/${path}`),
      );
      for (const name of secretVariables) expect(settings).not.toHaveProperty(name);
    },
  );

  test('only the migration has the password of the role that owns the tables', () => {
    const manifests = load();
    expect(Object.keys(environmentOf(manifests, 'Job').files)).toEqual([
      'MIGRATION_DATABASE_URL_FILE',
      'DATABASE_URL_FILE',
    ]);
    expect(environmentOf(manifests, 'Deployment').files).not.toHaveProperty('MIGRATION_DATABASE_URL_FILE');
    expect(environmentOf(manifests, 'Deployment').settings).not.toHaveProperty('MIGRATE_ON_START');
  });

  test('the migration is a Job named after the version, of the same image as the service', () => {
    const { only } = load();
    const job = only('Job');
    expect(job.metadata?.name).toBe(`tallyhook-migrate-${version.replaceAll('.', '-')}`);
    expect(containerOf(job).args).toEqual(['migrate']);
    const { image } = containerOf(job);
    expect(image?.endsWith(`tallyhook:${version}`)).toBe(true);
    expect(containerOf(only('Deployment'))).toMatchObject({ args: ['serve'], image });
    // Exit codes after which nothing but a change helps (docs/running.md).
    expect(job.spec?.podFailurePolicy?.rules[0]).toMatchObject({
      action: 'FailJob',
      onExitCodes: { containerName: containerOf(job).name, values: [2, 78] },
    });
    expect(podOf(job).restartPolicy).toBe('Never'); // as that policy needs it
  });

  test('the Job stays as it is when a secret of the service changes, since a Job cannot be changed', () => {
    const { secret } = secretOf(load(), 'Job');
    expect(secret?.metadata?.name).toBe('tallyhook-migration');
  });

  test('intake and operators have a Service each, with names of ports that the container has', () => {
    const { only, all } = load();
    const ports = containerOf(only('Deployment')).ports?.map(({ name }) => name);
    const targets = all('Service').map(({ metadata, spec }) => [
      metadata?.name,
      spec?.type ?? 'ClusterIP',
      spec?.ports?.map(({ targetPort }) => targetPort),
    ]);
    expect(targets).toEqual([
      ['tallyhook', 'ClusterIP', ['intake']],
      ['tallyhook-operators', 'ClusterIP', ['operators']],
    ]);
    for (const [, , [target] = []] of targets as [string, string, string[]][])
      expect(ports).toContain(target);
  });

  test('the operators’ port is closed but for monitoring and the operators’ namespace; no other port is open', () => {
    const { policyTypes, ingress = [] } = load().only('NetworkPolicy').spec ?? {};
    expect(policyTypes).toEqual(['Ingress']);
    expect(ingress.map(({ ports }) => ports)).toEqual([[{ port: 'intake' }], [{ port: 'operators' }]]);
    expect(ingress[1]?.from).toEqual([
      {
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } },
        podSelector: { matchLabels: { 'app.kubernetes.io/name': 'prometheus' } },
      },
      { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'tallyhook-operators' } } },
    ]);
  });

  test('with as many replicas as there may be, in a rollout and while a node is drained, Postgres has connections left', () => {
    const { only } = load();
    const { spec } = only('HorizontalPodAutoscaler');
    const sessions = ((spec?.maxReplicas ?? 0) + PODS_BESIDE) * SESSIONS + MIGRATION_SESSIONS + FOR_OTHERS;
    expect(sessions).toBeLessThanOrEqual(MAX_CONNECTIONS);
    // One more would be too many: nothing is given away.
    expect(sessions + SESSIONS).toBeGreaterThan(MAX_CONNECTIONS);
    // PODS_BESIDE counts one pod that the autoscaler ends: the next one is ended when that is gone.
    expect(spec?.behavior?.scaleDown?.policies).toEqual([{ type: 'Pods', value: 1, periodSeconds: 120 }]);
    expect(podOf(only('Deployment')).terminationGracePeriodSeconds).toBeLessThan(120);
    const page = readFileSync(new URL('../../docs/deploy.md', import.meta.url), 'utf8');
    expect(page).toContain(`\`max_connections\` of ${MAX_CONNECTIONS}`);
  });

  test('from outside only the address of deliveries is reached, over TLS', () => {
    const { all } = load();
    const intake = all('Service').find(({ metadata }) => metadata?.name === 'tallyhook');
    for (const { spec } of all('Ingress')) {
      const hosts = spec?.rules?.map(({ host }) => host);
      expect(spec?.tls?.flatMap(({ hosts: ofTls }) => ofTls)).toEqual(hosts);
      expect(spec?.defaultBackend).toBeUndefined();
      const port = { name: intake?.spec?.ports?.[0]?.name };
      expect(spec?.rules?.flatMap(({ http }) => http?.paths)).toEqual([
        { path: '/webhooks', pathType: 'Prefix', backend: { service: { name: 'tallyhook', port } } },
      ]);
    }
    for (const { spec } of all('HTTPRoute')) {
      expect(spec.rules).toEqual([
        {
          matches: [{ path: { type: 'PathPrefix', value: '/webhooks' } }],
          backendRefs: [{ name: 'tallyhook', port: intake?.spec?.ports?.[0]?.port }],
        },
      ]);
    }
    expect([...all('Ingress'), ...all('HTTPRoute')]).toHaveLength(1);
  });

  test('the ServiceMonitor finds the operators’ Service alone, and asks with a token', () => {
    const { only, all } = load();
    const { selector, endpoints } = only('ServiceMonitor').spec;
    const found = all('Service').filter(({ metadata }) => selects(selector.matchLabels, metadata?.labels));
    expect(found.map(({ metadata }) => metadata?.name)).toEqual(['tallyhook-operators']);
    expect(found[0]?.spec?.ports?.map(({ name }) => name)).toEqual(endpoints.map(({ port }) => port));
    expect(endpoints).toMatchObject([
      {
        path: '/metrics',
        authorization: { type: 'Bearer', credentials: { name: 'tallyhook-scraper', key: 'token' } },
      },
    ]);
  });
}
