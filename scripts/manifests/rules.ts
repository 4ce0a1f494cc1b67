// The alert rules of deploy/prometheus, where their reasons stand, as a Prometheus operator takes them.

import type { IPrometheusRule } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PrometheusRule';
import { readdirSync, readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { labelsOf } from './pod.ts';

type Groups = NonNullable<NonNullable<IPrometheusRule['spec']>['groups']>;

const RULES = new URL('../../deploy/prometheus/rules/', import.meta.url);

export const PROMETHEUS_RULE = {
  apiVersion: 'monitoring.coreos.com/v1',
  kind: 'PrometheusRule',
  metadata: { name: 'tallyhook', labels: labelsOf('operators') },
  spec: {
    groups: readdirSync(RULES).flatMap(
      (name) => (parse(readFileSync(new URL(name, RULES), 'utf8')) as { groups: Groups }).groups,
    ),
  },
} satisfies IPrometheusRule;
