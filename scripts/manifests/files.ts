// Every file in deploy/kubernetes that `npm run manifests` makes. A test compares each one with the committed file.

import { HTTPRoute } from '@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1/HTTPRoute';
import { PrometheusRule } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PrometheusRule';
import { ServiceMonitor } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/ServiceMonitor';
import { Deployment } from 'kubernetes-models/apps/v1/Deployment';
import { HorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2/HorizontalPodAutoscaler';
import { Job } from 'kubernetes-models/batch/v1/Job';
import { Ingress } from 'kubernetes-models/networking.k8s.io/v1/Ingress';
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1/NetworkPolicy';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget';
import { ConfigMap } from 'kubernetes-models/v1/ConfigMap';
import { Namespace } from 'kubernetes-models/v1/Namespace';
import { Service } from 'kubernetes-models/v1/Service';
import { ServiceAccount } from 'kubernetes-models/v1/ServiceAccount';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import { DEPLOYMENT, SERVICE_ACCOUNT } from './deployment.ts';
import { HTTP_ROUTE, INGRESS, NAMESPACE, SERVICE_MONITOR } from './examples.ts';
import { MIGRATION } from './migration.ts';
import { INTAKE, NETWORK_POLICY, OPERATORS } from './network.ts';
import { PROMETHEUS_RULE } from './rules.ts';
import { AUTOSCALER, DISRUPTION_BUDGET } from './scaling.ts';

export const MANIFESTS = fileURLToPath(new URL('../../deploy/kubernetes', import.meta.url));

/** The kinds that the manifests have, and the one that kustomize makes of settings. */
const MODELS: Readonly<Record<string, new (object: never) => { readonly validate: () => void }>> = {
  ConfigMap,
  Deployment,
  HorizontalPodAutoscaler,
  HTTPRoute,
  Ingress,
  Job,
  Namespace,
  NetworkPolicy,
  PodDisruptionBudget,
  PrometheusRule,
  Service,
  ServiceAccount,
  ServiceMonitor,
};

type Manifest = { readonly kind: string };
type Making = { readonly path: string; readonly source: string; readonly object: Manifest };

const MAKINGS: readonly Making[] = [
  { path: 'base/service-account.yaml', source: 'deployment', object: SERVICE_ACCOUNT },
  { path: 'base/deployment.yaml', source: 'deployment', object: DEPLOYMENT },
  { path: 'base/migration.yaml', source: 'migration', object: MIGRATION },
  { path: 'base/service-intake.yaml', source: 'network', object: INTAKE },
  { path: 'base/service-operators.yaml', source: 'network', object: OPERATORS },
  { path: 'base/network-policy.yaml', source: 'network', object: NETWORK_POLICY },
  { path: 'base/autoscaler.yaml', source: 'scaling', object: AUTOSCALER },
  { path: 'base/disruption-budget.yaml', source: 'scaling', object: DISRUPTION_BUDGET },
  { path: 'example/namespace.yaml', source: 'examples', object: NAMESPACE },
  { path: 'example/ingress.yaml', source: 'examples', object: INGRESS },
  { path: 'example/http-route.yaml', source: 'examples', object: HTTP_ROUTE },
  { path: 'example/service-monitor.yaml', source: 'examples', object: SERVICE_MONITOR },
  { path: 'example/prometheus-rule.yaml', source: 'rules', object: PROMETHEUS_RULE },
];

/** @throws for a value that its kind does not allow. It does not see a misspelt key: compiling refuses that in a literal. */
export function validate(object: Manifest): void {
  const Model = MODELS[object.kind];
  if (Model === undefined) throw new Error(`there is no model of ${object.kind}`);
  new Model(object as never).validate();
}

/** @throws as `validate` does */
export function makeManifests(): { path: string; text: string }[] {
  return MAKINGS.map(({ path, source, object }) => {
    validate(object);
    const head = `# Made by \`npm run manifests\` from scripts/manifests/${source}.ts, where the reasons stand.\n`;
    return { path, text: head + stringify(object, { aliasDuplicateObjects: false, lineWidth: 0 }) };
  });
}
