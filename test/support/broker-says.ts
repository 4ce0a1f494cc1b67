// What a connection to the broker says when it is refused: in the relay's log, and to a subscriber.

import { type CertificateFiles, readCertificates } from '../../src/base/net/certificates.ts';
import { createSubscriber } from '../../src/subscriber/index.ts';
import { newExchange } from './bus.ts';
import { createTestPublisher } from './relay.ts';
import { createTestLog } from './service.ts';
import { until } from './until.ts';

export type Said = { readonly code: string; readonly message: string };

const LIMIT_MS = 20_000;

/** What the relay logs when it connects to this URL. */
export async function relaySays(url: string, certificates?: CertificateFiles): Promise<Said> {
  const { log, lines } = createTestLog();
  const publisher = createTestPublisher({
    exchange: newExchange(),
    url,
    log,
    ...(certificates !== undefined && { certificates }),
  });
  try {
    return await until(
      'the relay says why',
      () => {
        const line = lines.find(
          ({ msg }) => msg === 'the broker refuses us' || msg === 'no TLS with the broker',
        );
        if (line === undefined) throw new Error(`it says only ${JSON.stringify(lines)}`);
        const { code, message } = line['err'] as Said;
        return { code, message };
      },
      { limitMs: LIMIT_MS },
    );
  } finally {
    await publisher.close();
  }
}

/** What a subscriber's start rejects with, or else its first notice of trouble has. */
export async function subscriberSays(url: string, certificates?: CertificateFiles): Promise<Said> {
  const stopping = new AbortController();
  const told = Promise.withResolvers<Error>();
  const starting = createSubscriber({
    url,
    ...(certificates !== undefined && { tls: () => readCertificates(certificates) }),
    queue: newExchange(),
    on: { completed: () => {} },
    signal: stopping.signal,
    onNotice: (notice) => {
      if (notice.type === 'unreachable') told.resolve(notice.error);
    },
  });
  starting.catch(told.resolve);
  const { code, message } = (await told.promise) as Error & Said;
  stopping.abort();
  await starting.catch(() => {});
  return { code, message };
}
