// How many pods there are: at least, while nodes are drained, and at most.

import type { IHorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2/HorizontalPodAutoscaler';
import type { IPodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget';
import { labelsOf, SERVICE_PODS } from './pod.ts';

/** `max_connections` of Postgres. Its default, 100, has no room for three replicas and what is beside them. */
export const MAX_CONNECTIONS = 200;
/** For others: `superuser_reserved_connections` (3), backups, monitoring, people. */
export const FOR_OTHERS = 20;
/** See "Sessions" in docs/servers.md: 20, and one for moments. */
export const SESSIONS = 21;
/** Of a migration, beside the service. */
export const MIGRATION_SESSIONS = 2;
/**
 * Pods that may have sessions beside those that the autoscaler counts: the one that a rollout adds, the one that it ends meanwhile, and
 * one that ends since its node is drained or the autoscaler took it away.
 */
export const PODS_BESIDE = 3;

export const MAX_REPLICAS =
  Math.floor((MAX_CONNECTIONS - FOR_OTHERS - MIGRATION_SESSIONS) / SESSIONS) - PODS_BESIDE;

export const AUTOSCALER = {
  apiVersion: 'autoscaling/v2',
  kind: 'HorizontalPodAutoscaler',
  metadata: { name: 'tallyhook', labels: labelsOf('autoscaler') },
  spec: {
    scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'tallyhook' },
    minReplicas: 2,
    maxReplicas: MAX_REPLICAS,
    metrics: [
      {
        type: 'Resource',
        // Of what is requested: half of a processor, where a process can use a whole one.
        resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 100 } },
      },
    ],
    behavior: {
      scaleUp: { policies: [{ type: 'Pods', value: 1, periodSeconds: 60 }] },
      // Longer than a pod takes to end, so that one ends at a time.
      scaleDown: { policies: [{ type: 'Pods', value: 1, periodSeconds: 120 }] },
    },
  },
} satisfies IHorizontalPodAutoscaler;

export const DISRUPTION_BUDGET = {
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name: 'tallyhook', labels: labelsOf('budget') },
  spec: {
    maxUnavailable: 1,
    selector: { matchLabels: SERVICE_PODS },
    // While Postgres is away no pod is ready. A node may be drained nevertheless.
    unhealthyPodEvictionPolicy: 'AlwaysAllow',
  },
} satisfies IPodDisruptionBudget;
