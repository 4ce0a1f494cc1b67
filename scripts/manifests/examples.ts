// What an overlay adds: its namespace, the way in from outside, and what a Prometheus operator asks. The names are placeholders.

import type { IHTTPRoute } from '@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1/HTTPRoute';
import type { IServiceMonitor } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/ServiceMonitor';
import type { IIngress } from 'kubernetes-models/networking.k8s.io/v1/Ingress';
import type { INamespace } from 'kubernetes-models/v1/Namespace';
import { INTAKE, OPERATORS } from './network.ts';
import { labelsOf } from './pod.ts';

const HOST = 'webhooks.example.com';
/** Not `/livez` and `/readyz`, which the intake answers, too. */
const PATH = '/webhooks';

export const NAMESPACE = {
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: {
    name: 'tallyhook',
    labels: { 'pod-security.kubernetes.io/enforce': 'restricted' },
  },
} satisfies INamespace;

export const INGRESS = {
  apiVersion: 'networking.k8s.io/v1',
  kind: 'Ingress',
  metadata: { name: 'tallyhook', labels: labelsOf('intake') },
  spec: {
    ingressClassName: 'nginx',
    tls: [{ hosts: [HOST], secretName: 'tallyhook-certificate' }],
    rules: [
      {
        host: HOST,
        http: {
          paths: [
            {
              path: PATH,
              pathType: 'Prefix',
              backend: { service: { name: INTAKE.metadata.name, port: { name: 'intake' } } },
            },
          ],
        },
      },
    ],
  },
} satisfies IIngress;

export const HTTP_ROUTE = {
  apiVersion: 'gateway.networking.k8s.io/v1',
  kind: 'HTTPRoute',
  metadata: { name: 'tallyhook', labels: labelsOf('intake') },
  spec: {
    parentRefs: [{ name: 'public', namespace: 'gateways' }],
    hostnames: [HOST],
    rules: [
      {
        matches: [{ path: { type: 'PathPrefix', value: PATH } }],
        backendRefs: [{ name: INTAKE.metadata.name, port: 80 }],
      },
    ],
  },
} satisfies IHTTPRoute;

export const SERVICE_MONITOR = {
  apiVersion: 'monitoring.coreos.com/v1',
  kind: 'ServiceMonitor',
  metadata: { name: 'tallyhook', labels: labelsOf('operators') },
  spec: {
    selector: {
      matchLabels: {
        'app.kubernetes.io/name': 'tallyhook',
        'app.kubernetes.io/component': OPERATORS.metadata.labels['app.kubernetes.io/component'],
      },
    },
    endpoints: [
      {
        port: 'operators',
        path: '/metrics',
        interval: '30s',
        // A token with the role `scraper`.
        authorization: { type: 'Bearer', credentials: { name: 'tallyhook-scraper', key: 'token' } },
      },
    ],
  },
} satisfies IServiceMonitor;
