// The two ports, apart: a Service for each, and who may connect to which.

import type { INetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1/NetworkPolicy';
import type { IService } from 'kubernetes-models/v1/Service';
import { labelsOf, SERVICE_PODS } from './pod.ts';

export const INTAKE = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'tallyhook', labels: labelsOf('intake') },
  spec: {
    selector: SERVICE_PODS,
    ports: [{ name: 'intake', port: 80, targetPort: 'intake' }],
  },
} satisfies IService;

export const OPERATORS = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'tallyhook-operators', labels: labelsOf('operators') },
  spec: {
    selector: SERVICE_PODS,
    ports: [{ name: 'operators', port: 8081, targetPort: 'operators' }],
  },
} satisfies IService;

/** The label that Kubernetes gives each namespace. */
const namespace = (name: string) => ({ matchLabels: { 'kubernetes.io/metadata.name': name } });

/**
 * What is not named here reaches no other port. The kubelet, whose probes come from the pod's own node, always may. What the service
 * connects to is not limited: where Postgres and RabbitMQ are, an overlay knows.
 */
export const NETWORK_POLICY = {
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: { name: 'tallyhook', labels: labelsOf('policy') },
  spec: {
    podSelector: { matchLabels: SERVICE_PODS },
    policyTypes: ['Ingress'],
    ingress: [
      // From everybody: a signature opens it.
      { ports: [{ port: 'intake' }] },
      {
        ports: [{ port: 'operators' }],
        from: [
          {
            namespaceSelector: namespace('monitoring'),
            podSelector: { matchLabels: { 'app.kubernetes.io/name': 'prometheus' } },
          },
          { namespaceSelector: namespace('tallyhook-operators') },
        ],
      },
    ],
  },
} satisfies INetworkPolicy;
