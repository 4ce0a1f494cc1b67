// The signing secrets of the run's sources, as operators configure them (SIGNING_SECRETS and SOURCES_FILE) and as senders
// use them; and their rotation, step by step, as docs/senders.md says.

import { renameSync, writeFileSync } from 'node:fs';
import type { Random } from './random.ts';
import type { Replica } from './replica.ts';
import { until } from '../support/until.ts';

export const SOURCE_NAMES = ['default', 'team-a', 'team-b'] as const;
export type SourceName = (typeof SOURCE_NAMES)[number];

/** In this time, by performance.now(), the secret was certainly one of its source's. */
export type SecretInForce = { readonly secret: string; readonly fromMs: number; untilMs: number };

export type Sources = {
  readonly file: string;
  /** SIGNING_SECRETS. */
  readonly defaultSecret: string;
  /** The secret with which a sender signs at present. */
  readonly secretOf: (source: SourceName) => string;
  /** A secret that was dropped, with which nothing may be accepted; undefined before the first rotation. */
  readonly retiredSecretOf: (source: SourceName) => string | undefined;
  /** Every secret that there was, and when. */
  readonly inForce: readonly SecretInForce[];
  /** Adds a secret. Senders sign with it once every replica knows it. */
  readonly addSecret: (source: SourceName, replicas: readonly Replica[]) => Promise<void>;
  /** Drops all but the newest. Resolves when every replica has forgotten them. */
  readonly dropOldSecrets: (source: SourceName, replicas: readonly Replica[]) => Promise<void>;
};

const RELOAD_LIMIT_MS = 60_000;

export function createSources(file: string, random: Random): Sources {
  const inForce: SecretInForce[] = [];
  const retired = new Map<SourceName, string>();
  const current = new Map<SourceName, string[]>();
  const draw = random.fork('secrets');
  const fresh = (source: SourceName) => `planted-${source}-${draw.digits(32)}`;
  const enter = (secret: string) =>
    inForce.push({ secret, fromMs: performance.now(), untilMs: Number.POSITIVE_INFINITY });
  for (const source of SOURCE_NAMES) {
    const secret = fresh(source);
    current.set(source, [secret]);
    enter(secret);
  }
  const secretsOf = (source: SourceName) => current.get(source) as string[];

  function write(): void {
    const named = SOURCE_NAMES.filter((name) => name !== 'default');
    const content = Object.fromEntries(named.map((name) => [name, { secrets: secretsOf(name) }]));
    writeFileSync(`${file}.new`, JSON.stringify(content), { mode: 0o600 });
    renameSync(`${file}.new`, file);
  }
  write();

  async function publish(replicas: readonly Replica[]): Promise<void> {
    const marks = replicas.map((replica) => ({ replica, fromByte: replica.logBytes() }));
    write();
    for (const { replica } of marks) await replica.kill('SIGHUP');
    // A replica that starts meanwhile reads the file at its start.
    const loaded = ({ replica, fromByte }: (typeof marks)[number]) =>
      /"sources loaded"|"listening"/.test(replica.log(fromByte));
    await until('every replica has read SOURCES_FILE', () => (marks.every(loaded) ? true : undefined), {
      limitMs: RELOAD_LIMIT_MS,
    });
  }

  return {
    file,
    defaultSecret: secretsOf('default')[0] as string,
    secretOf: (source) => secretsOf(source)[0] as string,
    retiredSecretOf: (source) => retired.get(source),
    inForce,
    addSecret: async (source, replicas) => {
      const added = fresh(source);
      const old = secretsOf(source);
      // After the old one, with which senders sign until every replica knows both.
      current.set(source, [...old, added]);
      await publish(replicas);
      current.set(source, [added, ...old]);
      enter(added);
    },
    dropOldSecrets: async (source, replicas) => {
      const [kept, ...old] = secretsOf(source);
      current.set(source, [kept as string]);
      for (const entry of inForce) if (old.includes(entry.secret)) entry.untilMs = performance.now();
      await publish(replicas);
      for (const secret of old) retired.set(source, secret);
    },
  };
}
