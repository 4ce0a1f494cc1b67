// Images cannot be built where the tests run: what the file says is held against what is promised of the image.

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const lines = readFileSync(new URL('../../Dockerfile', import.meta.url), 'utf8')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'));
const image = lines.slice(lines.findLastIndex((line) => line.startsWith('FROM ')));
const of = (instruction: string) => image.filter((line) => line.startsWith(`${instruction} `));

test('the image brings Node without its package managers, and runs no command that could bring them', () => {
  expect(of('FROM')).toEqual(['FROM debian:bookworm-slim']);
  expect(of('RUN')).toEqual([]);
  expect(of('COPY').filter((line) => line.includes('--from='))).toEqual([
    'COPY --from=packages /usr/local/bin/node /usr/local/bin/node',
    'COPY --from=packages /app/node_modules ./node_modules',
  ]);
});

test('the image runs the service as an account without rights, and tells its health', () => {
  expect(of('USER')).toEqual(['USER 1000:1000']);
  expect(of('ENTRYPOINT')).toEqual(['ENTRYPOINT ["node", "src/main.ts"]']);
  expect(of('HEALTHCHECK').join()).toContain('CMD ["node", "-e"');
});

test('the image has every folder of ours that the service reads, and the build gets it', () => {
  const ignored = readFileSync(new URL('../../.dockerignore', import.meta.url), 'utf8');
  for (const folder of ['migrations', 'contracts', 'src']) {
    expect(of('COPY')).toContain(`COPY ${folder} ./${folder}`);
    expect(ignored).toContain(`\n!${folder}\n`);
  }
});
