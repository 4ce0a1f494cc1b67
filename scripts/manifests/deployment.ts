// The service's pods: how they start, are asked, are replaced without lost capacity, and end.

import type { IDeployment } from 'kubernetes-models/apps/v1/Deployment';
import type { IServiceAccount } from 'kubernetes-models/v1/ServiceAccount';
import { labelsOf, LOCKED_DOWN, secretFiles, secretVolume, SERVICE_PODS, WITHOUT_RIGHTS } from './pod.ts';

/**
 * SHUTDOWN_DELAY_MS and SHUTDOWN_GRACE_MS of settings.env, the 5 s after which the service ends by force what could not be stopped,
 * and as much again for the kubelet.
 */
const TERMINATION_S = 40;

/** Operators' port: it answers also while strangers have taken all connections of the intake, which is no reason for a restart. */
const ask = (path: string) => ({ httpGet: { path, port: 'operators' } });

const SECRET_KEYS = {
  DATABASE_URL: 'database-url',
  AMQP_URL: 'amqp-url',
  SIGNING_SECRETS: 'signing-secrets',
} as const;

export const SERVICE_ACCOUNT = {
  apiVersion: 'v1',
  kind: 'ServiceAccount',
  metadata: { name: 'tallyhook', labels: labelsOf('account') },
  automountServiceAccountToken: false,
} satisfies IServiceAccount;

export const DEPLOYMENT = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'tallyhook', labels: labelsOf('service') },
  spec: {
    // No `replicas`: the HorizontalPodAutoscaler keeps two or more. A number here would take back at each deployment what it added.
    selector: { matchLabels: SERVICE_PODS },
    strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
    // One pod at a time: the next one is replaced when the last one has ended, with its connections to Postgres. An ending pod is not
    // counted in maxSurge.
    minReadySeconds: TERMINATION_S,
    revisionHistoryLimit: 5,
    template: {
      metadata: { labels: labelsOf('service') },
      spec: {
        ...WITHOUT_RIGHTS,
        terminationGracePeriodSeconds: TERMINATION_S,
        topologySpreadConstraints: [
          {
            topologyKey: 'kubernetes.io/hostname',
            maxSkew: 1,
            whenUnsatisfiable: 'DoNotSchedule',
            // A node that is being drained is not one on which a pod could be.
            nodeTaintsPolicy: 'Honor',
            // Each version by itself: the old pods of a rollout do not push the new ones together.
            matchLabelKeys: ['pod-template-hash'],
            labelSelector: { matchLabels: SERVICE_PODS },
          },
          {
            topologyKey: 'topology.kubernetes.io/zone',
            maxSkew: 1,
            // Where nodes have no zone, or one zone is full, a pod in the wrong one is better than none.
            whenUnsatisfiable: 'ScheduleAnyway',
            matchLabelKeys: ['pod-template-hash'],
            labelSelector: { matchLabels: SERVICE_PODS },
          },
        ],
        containers: [
          {
            name: 'tallyhook',
            ...LOCKED_DOWN,
            args: ['serve'],
            envFrom: [{ configMapRef: { name: 'tallyhook' } }],
            env: secretFiles(SECRET_KEYS),
            ports: [
              { name: 'intake', containerPort: 8080 },
              { name: 'operators', containerPort: 8081 },
            ],
            // For Node to load the program, on a busy machine. It does not wait for Postgres: the service is live before.
            startupProbe: { ...ask('/livez'), periodSeconds: 2, timeoutSeconds: 2, failureThreshold: 30 },
            // A restart loses what waits for its commit, so only after a minute without an answer.
            livenessProbe: { ...ask('/livez'), periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 6 },
            // It asks Postgres, which may take as long as a delivery's commit.
            readinessProbe: { ...ask('/readyz'), periodSeconds: 3, timeoutSeconds: 5, failureThreshold: 2 },
            resources: {
              // See "Memory" in docs/running.md. No limit of the processor: it would delay answers for which senders wait.
              requests: { cpu: '500m', memory: '1Gi' },
              limits: { memory: '1Gi' },
            },
          },
        ],
        volumes: [secretVolume('tallyhook', SECRET_KEYS)],
      },
    },
  },
} satisfies IDeployment;
