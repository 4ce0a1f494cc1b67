// A RabbitMQ of a test's own that speaks TLS, set up as docs/tls.md has it, beside its plain port.

import { findFreePort } from '../../scripts/services/ports.ts';
import { type RabbitmqServer, startRabbitmq } from '../../scripts/services/rabbitmq.ts';
import type { Certificate } from './certificate.ts';
import { commandsUnder } from './deploy-page.ts';
import { createFolder } from './folder.ts';
import { until } from './until.ts';

const CTL_LIMIT_MS = 90_000;

export type TlsRabbitmq = AsyncDisposable & {
  readonly server: RabbitmqServer;
  /** `amqps://`, by the name `localhost`. */
  readonly url: string;
  /** `server.ctl`, tried again if it took too long: on a busy machine it starts slowly. */
  readonly ctl: (...args: string[]) => Promise<unknown>;
  /** Shows another certificate from now on, and trusts this CA for those of clients. */
  readonly show: (certificate: Certificate, ca: string) => Promise<void>;
};

export async function startTlsRabbitmq(certificate: Certificate, ca: string): Promise<TlsRabbitmq> {
  await using starting = new AsyncDisposableStack();
  const folder = starting.use(await createFolder());
  const port = await findFreePort();
  const conf = commandsUnder('RabbitMQ', 'ini', 'tls.md').join('');
  const settings = Object.fromEntries(
    conf
      .replaceAll('/etc/rabbitmq', folder.path('.'))
      .replace('listeners.ssl.default = 5671', `listeners.ssl.1 = 127.0.0.1:${port}`)
      .trimEnd()
      .split('\n')
      .map((line) => line.split(' = ') as [string, string]),
  );

  async function write(shown: Certificate, trusted: string): Promise<void> {
    await folder.write('ca.pem', trusted);
    await folder.write('rabbitmq.pem', shown.cert);
    await folder.write('rabbitmq.key', shown.key);
  }

  await write(certificate, ca);
  const server = starting.use(await startRabbitmq({ settings }));
  const url = server.url.replace('amqp:', 'amqps:').replace(`127.0.0.1:${server.port}`, `localhost:${port}`);
  const started = starting.move();
  const ctl = (...args: string[]) =>
    until(`rabbitmqctl ${args[0]}`, () => server.ctl(...args), { limitMs: CTL_LIMIT_MS });
  return {
    server,
    url,
    ctl,
    show: async (shown, trusted) => {
      await write(shown, trusted);
      await ctl('eval', 'ssl:clear_pem_cache().');
    },
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}
