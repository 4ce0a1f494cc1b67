// HAProxy in front of a Postgres cluster, as deploy/haproxy has it: only addresses and ports are the test's own.

import { closeSync, openSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { findFreePort } from '../../scripts/services/ports.ts';
import type { PatroniMember } from './patroni-member.ts';
import { logOf, type Place, untilListening } from './patroni-place.ts';

const FILE = fileURLToPath(new URL('../../deploy/haproxy/postgres-patroni.cfg', import.meta.url));

/** As ourselves, since other accounts may not be able to read the file. @returns `host:port` */
export async function startPatroniProxy(
  place: Pick<Place, 'guard' | 'folder'>,
  members: readonly Pick<PatroniMember, 'host' | 'restPort'>[],
): Promise<string> {
  const port = await findFreePort();
  const host = `127.0.0.1:${port}`;
  const output = openSync(logOf(place, 'haproxy'), 'a', 0o600);
  const proxy = place.guard.spawn(process.env['TEST_HAPROXY'] ?? 'haproxy', ['-f', FILE], {
    cwd: place.folder,
    env: {
      LISTEN: host,
      ...Object.fromEntries(members.map((member, index) => [`POSTGRES_${index + 1}`, member.host])),
      ...Object.fromEntries(members.map(({ restPort }, index) => [`PATRONI_${index + 1}`, String(restPort)])),
    },
    ending: { signal: 'SIGTERM', graceMs: 1_000 },
    output,
  });
  closeSync(output);
  await untilListening(place, 'haproxy', { program: proxy, port });
  return host;
}
