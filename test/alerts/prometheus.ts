// A real Prometheus that scrapes replicas each second, with the rules of deploy/prometheus in a faster form. It is asked what fires.

import { closeSync, mkdirSync, openSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { stringify } from 'yaml';
import type { Guard } from '../../scripts/services/guard.ts';
import { lastLines } from '../../scripts/services/folders.ts';
import { findFreePort } from '../../scripts/services/ports.ts';
import { readAlertRules } from '../support/alert-rules.ts';
import { until } from '../support/until.ts';
import { type Faster, makeFaster } from './faster.ts';

export type Prometheus = {
  /** How many alerts fire, by condition. */
  readonly firing: () => Promise<ReadonlyMap<string, number>>;
};

type Answer = {
  readonly data: {
    readonly alerts: readonly { readonly state: string; readonly labels: { readonly alertname: string } }[];
  };
};

const ENDING = { signal: 'SIGTERM', graceMs: 5_000 } as const;

/** Resolves when it answers. `targets`: `host:port` of the replicas. */
export async function startPrometheus(options: {
  guard: Guard;
  program: string;
  folder: string;
  targets: readonly string[];
  scraperToken: string;
  faster: Faster;
}): Promise<Prometheus> {
  const { guard, program, targets } = options;
  const folder = join(options.folder, 'prometheus');
  mkdirSync(folder, { mode: 0o700 });
  const rules = readAlertRules();
  for (const { file, text } of rules)
    writeFileSync(join(folder, basename(file)), makeFaster(text, options.faster));
  writeFileSync(join(folder, 'token'), options.scraperToken, { mode: 0o600 });
  const configuration = {
    global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
    scrape_configs: [
      {
        job_name: 'tallyhook',
        authorization: { credentials_file: join(folder, 'token') },
        static_configs: [{ targets }],
      },
    ],
    rule_files: rules.map(({ file }) => join(folder, basename(file))),
  };
  writeFileSync(join(folder, 'prometheus.yml'), stringify(configuration));
  const address = `127.0.0.1:${await findFreePort()}`;
  const logFile = join(folder, 'log');
  const output = openSync(logFile, 'a', 0o600);
  const server = guard.spawn(
    program,
    [
      `--config.file=${join(folder, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=${address}`,
      '--log.level=warn',
    ],
    { cwd: folder, env: { PATH: process.env['PATH'] }, ending: ENDING, output },
  );
  closeSync(output);
  const names = new Map(rules.map(({ alert, condition }) => [alert, condition]));

  async function firing(): Promise<ReadonlyMap<string, number>> {
    if (server.hasExited()) throw new Error(`Prometheus ended:\n${lastLines(logFile, 10)}`);
    const { data } = (await (await fetch(`http://${address}/api/v1/alerts`)).json()) as Answer;
    const found = new Map<string, number>();
    for (const { state, labels } of data.alerts) {
      const name = names.get(labels.alertname) as string;
      if (state === 'firing') found.set(name, (found.get(name) ?? 0) + 1);
    }
    return found;
  }

  await until('Prometheus answers', async () => (await fetch(`http://${address}/-/ready`)).ok || undefined, {
    limitMs: 30_000,
  });
  return { firing };
}
