// What the Dockerfile says, held against what is promised of the image. test/deploy/image.test.ts builds and runs its last stage.

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const lines = read('Dockerfile')
  .replaceAll(/ \\\n +/g, ' ')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'));
const stages = lines.flatMap((line, index) => (line.startsWith('FROM ') ? [index] : []));
const [, ofBase = [], image = []] = stages.map((start, index) => lines.slice(start, stages[index + 1]));
const of = (instruction: string) => image.filter((line) => line.startsWith(`${instruction} `));

test('the image brings Node without its package managers, and runs no command that could bring them', () => {
  expect(lines[0]).toBe('ARG BASE=node-alone');
  expect(of('FROM')).toEqual(['FROM ${BASE}']);
  expect(ofBase).toEqual([
    'FROM debian:bookworm-slim AS node-alone',
    'COPY --from=packages /usr/local/bin/node /usr/local/bin/node',
  ]);
  expect(of('RUN')).toEqual([]);
  expect(of('COPY').filter((line) => line.includes('--from='))).toEqual([
    'COPY --from=packages /app/node_modules ./node_modules',
  ]);
});

test('the image runs the service as an account without rights, and tells its health', () => {
  expect(of('USER')).toEqual(['USER 1000:1000']);
  expect(of('ENTRYPOINT')).toEqual(['ENTRYPOINT ["node", "src/main.ts"]']);
  expect(of('HEALTHCHECK').join()).toContain('CMD ["node", "src/main.ts", "healthcheck"]');
});

test('its labels say what package.json says', () => {
  const { name, description, version, license } = JSON.parse(read('package.json')) as Record<string, string>;
  const labels = Object.entries({ title: name, description, version, licenses: license });
  const text = labels.map(([label, value]) => `org.opencontainers.image.${label}="${value}"`).join(' ');
  expect(of('LABEL')).toEqual([`LABEL ${text}`]);
});

test('the image has every folder of ours that the service reads, and the build gets it', () => {
  const ignored = read('.dockerignore');
  for (const folder of ['migrations', 'contracts', 'docs', 'src']) {
    expect(of('COPY')).toContain(`COPY ${folder} ./${folder}`);
    expect(ignored).toContain(`\n!${folder}\n`);
  }
});
