// The manifests in deploy/kubernetes: that they are made from their sources, what refuses a mistake in these, and what is promised of
// them. What `kubectl kustomize` makes of them is in test/deploy/kubernetes.test.ts.

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { IDeployment } from 'kubernetes-models/apps/v1/Deployment';
import type { IJob } from 'kubernetes-models/batch/v1/Job';
import type { IContainer } from 'kubernetes-models/v1/Container';
import { describe, expect, test } from 'vitest';
import { DEPLOYMENT } from '../../../scripts/manifests/deployment.ts';
import { makeManifests, MANIFESTS, validate } from '../../../scripts/manifests/files.ts';
import { holdsPromises, manifestsOfFiles } from '../../support/manifests.ts';

const made = makeManifests();

test.each(made)('deploy/kubernetes/$path is as it is made: npm run manifests', async ({ path, text }) => {
  await expect(text).toMatchFileSnapshot(join(MANIFESTS, path));
});

test('each file in deploy/kubernetes is made, or one of those that are written by hand', () => {
  const files = readdirSync(MANIFESTS, { recursive: true, encoding: 'utf8' }).filter(
    (name) => /\.\w+$/.test(name) && !name.includes('secrets/'),
  );
  const byHand = ['base', 'example'].flatMap((folder) => [
    `${folder}/kustomization.yaml`,
    `${folder}/settings.env`,
  ]);
  expect(files.toSorted()).toEqual([...made.map(({ path }) => path), ...byHand].toSorted());
});

// That these lines compile shows that what they plant does not: tsc reports an `@ts-expect-error` without an error.
describe('a misspelt key in a literal does not compile, and nothing else sees it', () => {
  test('in the middle of a Deployment', () => {
    const planted = {
      ...DEPLOYMENT,
      spec: {
        selector: {},
        template: {},
        // @ts-expect-error -- there is no `minReadySecond`
        minReadySecond: 40,
      },
    } satisfies IDeployment;
    expect(() => validate(planted)).not.toThrow();
  });

  test('deep in a Job', () => {
    const planted = {
      apiVersion: 'batch/v1',
      kind: 'Job',
      spec: {
        template: {
          spec: {
            containers: [
              {
                name: 'migrate',
                // @ts-expect-error -- there is no `allowPrivilegesEscalation`
                securityContext: { allowPrivilegesEscalation: false },
              },
            ],
          },
        },
      },
    } satisfies IJob;
    expect(() => validate(planted)).not.toThrow();
  });

  test('in a part that two manifests share', () => {
    const planted = {
      // @ts-expect-error -- there is no `volumesMounts`
      volumesMounts: [],
    } satisfies Partial<IContainer>;
    expect(planted).toBeDefined();
  });
});

const containerWith = (fields: object) => ({
  ...DEPLOYMENT,
  spec: {
    ...DEPLOYMENT.spec,
    template: { spec: { containers: [{ ...DEPLOYMENT.spec.template.spec.containers[0], ...fields }] } },
  },
});

describe('a wrong value is refused when the manifests are made', () => {
  test.each([
    ['a quantity', { resources: { limits: { memory: '1GiB' } } }, 'limits/memory'],
    ['a quantity of processors', { resources: { requests: { cpu: '500 m' } } }, 'requests/cpu'],
    ['a port', { ports: [{ containerPort: '8080' }] }, 'containerPort must be integer'],
    ['a word', { imagePullPolicy: 'Sometimes' }, 'imagePullPolicy must be equal to one of'],
  ])('%s', (_what, fields, words) => {
    expect(() => validate(containerWith({}))).not.toThrow();
    expect(() => validate(containerWith(fields))).toThrow(words);
  });
});

describe('of the files', () => {
  const manifests = manifestsOfFiles();
  holdsPromises(() => manifests);
});
