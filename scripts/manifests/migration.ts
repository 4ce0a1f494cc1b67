// The migration of the schema as a Job of its own, since only it has the password of the role that owns the tables.

import type { IJob } from 'kubernetes-models/batch/v1/Job';
import { version } from '../../src/base/version.ts';
import { labelsOf, LOCKED_DOWN, secretFiles, secretVolume, WITHOUT_RIGHTS } from './pod.ts';

const WEEK_S = 7 * 24 * 60 * 60;

/** Wrong usage and a wrong configuration or schema: another attempt would end in the same way. */
const FOR_GOOD = [2, 78];

const SECRET_KEYS = {
  MIGRATION_DATABASE_URL: 'migration-database-url',
  DATABASE_URL: 'database-url',
} as const;

export const MIGRATION = {
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: {
    // A Job cannot be changed: each version has its own. Names of pods have no dots.
    name: `tallyhook-migrate-${version.replaceAll('.', '-')}`,
    labels: labelsOf('migration'),
  },
  spec: {
    // Some half an hour, with Kubernetes' growing pauses: Postgres may be away for a while. No deadline: building an index takes long.
    backoffLimit: 10,
    podFailurePolicy: {
      rules: [
        { action: 'FailJob', onExitCodes: { containerName: 'migrate', operator: 'In', values: FOR_GOOD } },
        // A drained node is no failed attempt.
        { action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget', status: 'True' }] },
      ],
    },
    ttlSecondsAfterFinished: WEEK_S,
    template: {
      metadata: { labels: labelsOf('migration') },
      spec: {
        ...WITHOUT_RIGHTS,
        restartPolicy: 'Never', // as podFailurePolicy needs it
        containers: [
          {
            name: 'migrate',
            ...LOCKED_DOWN,
            args: ['migrate'],
            env: secretFiles(SECRET_KEYS),
            resources: { requests: { cpu: '100m', memory: '256Mi' }, limits: { memory: '256Mi' } },
          },
        ],
        // A Secret of its own, with a name that stays: a Job's cannot be changed, and those of the service change with their values.
        volumes: [secretVolume('tallyhook-migration', SECRET_KEYS)],
      },
    },
  },
} satisfies IJob;
