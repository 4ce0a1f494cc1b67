// What the pods of the service and of its migration share: the image, labels, the secrets' files, and rights that they do not have.

import type { IContainer } from 'kubernetes-models/v1/Container';
import type { IPodSpec } from 'kubernetes-models/v1/PodSpec';
import { version } from '../../src/base/version.ts';

/** The name is replaced by `images` of an overlay; the tag stays, so that the image and the migration are of one version. */
export const IMAGE = `tallyhook:${version}`;

/** By these the Services and policies find the service's pods, and not those of its migration. They never change. */
export const SERVICE_PODS = {
  'app.kubernetes.io/name': 'tallyhook',
  'app.kubernetes.io/component': 'service',
} as const;

export const labelsOf = (component: string) => ({
  'app.kubernetes.io/name': 'tallyhook',
  'app.kubernetes.io/component': component,
  'app.kubernetes.io/version': version,
});

/** Where the keys of the Secrets are files. */
export const SECRETS = '/run/secrets/tallyhook';

/** Each variable and the key whose file it names. */
type SecretKeys = Readonly<Record<string, string>>;

export const secretFiles = (keys: SecretKeys) =>
  Object.entries(keys).map(([variable, key]) => ({ name: `${variable}_FILE`, value: `${SECRETS}/${key}` }));

/** Of the owner and the group alone, which is that of `fsGroup`. */
const READ_BY_GROUP = 0o440;

/** The files that `secretFiles` names. */
export const secretVolume = (secretName: string, keys: SecretKeys) => ({
  name: 'secrets',
  secret: {
    secretName,
    defaultMode: READ_BY_GROUP,
    items: Object.values(keys).map((key) => ({ key, path: key })),
  },
});

export const WITHOUT_RIGHTS = {
  serviceAccountName: 'tallyhook',
  // It asks the cluster for nothing.
  automountServiceAccountToken: false,
  // Otherwise each Service of the namespace becomes variables, such as TALLYHOOK_PORT.
  enableServiceLinks: false,
  securityContext: {
    runAsNonRoot: true,
    // The image's user, and a group that may read the secrets' files.
    runAsUser: 1000,
    runAsGroup: 1000,
    fsGroup: 1000,
    seccompProfile: { type: 'RuntimeDefault' },
  },
} satisfies Partial<IPodSpec>;

export const LOCKED_DOWN = {
  image: IMAGE,
  securityContext: {
    allowPrivilegeEscalation: false,
    // It writes no file, so it needs no volume for any either.
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  },
  volumeMounts: [{ name: 'secrets', mountPath: SECRETS, readOnly: true }],
} satisfies Partial<IContainer>;
