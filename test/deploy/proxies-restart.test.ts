// Two replicas behind each proxy of deploy/ are restarted in turn, while senders send 20 deliveries a second on connections that they
// keep, and 20 on new ones: each of them is answered with 202.

import { expect, test } from 'vitest';
import { findFreePort } from '../../scripts/services/ports.ts';
import { createTestDatabase } from '../support/database.ts';
import { PROXIES, startDeployedProxy } from '../support/deployed-proxies.ts';
import { eventIds } from '../support/facts.ts';
import { type Load, startLoad } from '../support/load.ts';
import { startReplica } from '../support/replica.ts';
import { waitFor } from '../support/waits.ts';

/** As docs/deploy.md has it: nginx does not ask for readiness. */
const SHUTDOWN_DELAY_MS = { nginx: '0', haproxy: '3000', caddy: '3000' } as const;

/** 20 a second. Each sender waits for its answer, so that a slow machine is asked less and not buried. */
const SENDERS = { senders: 4, pauseMs: 200 } as const;

/** Before, between and after the restarts. */
const AWHILE = 20;

const names = ['nginx', 'haproxy', 'caddy'] as const;

function moreAnswers({ reached, acknowledged }: Load): Promise<void> {
  return reached(acknowledged().size + AWHILE);
}

for (const name of names) {
  test.skipIf(!PROXIES[name].program)(
    `behind ${name} two replicas are restarted in turn, and no answer is another than 202`,
    async () => {
      await using database = await createTestDatabase();
      const start = (port: number) =>
        startReplica({
          databaseUrl: database.url,
          env: {
            PORT: String(port),
            SHUTDOWN_DELAY_MS: SHUTDOWN_DELAY_MS[name],
            TRUSTED_PROXIES: '127.0.0.1',
          },
        });
      const ports = [await findFreePort(), await findFreePort()] as const;
      await using replicas = new AsyncDisposableStack();
      const running = await Promise.all(
        ports.map(async (port) => ({ port, replica: replicas.use(await start(port)) })),
      );
      const addresses = ports.map((port) => `127.0.0.1:${port}`) as [string, string];
      await using proxy = await startDeployedProxy(name, addresses);
      const senders = { ...SENDERS, ca: proxy.ca };
      await using kept = startLoad(() => [`${proxy.url}/webhooks`], { ...senders, keepAlive: true });
      await using fresh = startLoad(() => [`${proxy.url}/webhooks`], senders);
      await Promise.all([kept, fresh].map(moreAnswers));

      for (const { port, replica } of running) {
        replica.kill('SIGTERM');
        expect(await replica.exited).toEqual({ code: 0, signal: null });
        const { log } = replicas.use(await start(port));
        // The next one is stopped when the proxy sends to this one again: it may not be ready, or not be asked, when it listens.
        await waitFor(() => expect(log.map(({ msg }) => msg)).toContain('delivery'), { timeout: 20_000 });
        await Promise.all([kept, fresh].map(moreAnswers));
      }
      await Promise.all([kept.stop(), fresh.stop()]);

      const others = [...kept.answers, ...fresh.answers].filter(({ status }) => status !== 202);
      expect(others.map((answer) => JSON.stringify(answer))).toEqual([]); // a line each, so that a run's output has them whole
      expect(await eventIds(database)).toHaveLength(kept.answers.length + fresh.answers.length);
    },
  );
}
