// What reaches no route leaves a count and a line, and a peer has one form of address.

import { expect, test } from 'vitest';
import { deliveries } from '../../support/ledger.ts';
import { openRaw, rawPost } from '../../support/raw-http.ts';
import { startTestService } from '../../support/service.ts';

test('requests that cannot be read are counted by kind from 0 on and named in the log; IPv4 peers of :: are IPv4', async () => {
  await using relay = await startTestService({ env: { HOST: '::' } });
  const metrics = async () => (await fetch(`${relay.operators}/metrics`)).text();
  const before = await metrics();
  expect(before).toContain('tallyhook_deliveries_total{source="default",outcome="accepted"} 0');
  expect(before).toContain('tallyhook_publications_total{result="confirmed"} 0');
  expect(before).toContain('tallyhook_answer_seconds_count{outcome="unavailable"} 0');
  expect(before).toContain('tallyhook_unparsed_requests_total{face="intake",kind="tls"} 0');

  for (const bytes of [
    Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03]),
    'PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\nPOST /webhooks HTTP/1.1\r\n\r\n',
    rawPost('{}', { 'content-length': '2' }),
    rawPost('{}'),
  ]) {
    using connection = await openRaw(relay.service.port);
    connection.write(bytes);
    await connection.replies();
  }

  const after = await metrics();
  for (const kind of ['tls', 'proxy_protocol', 'repeated_length'])
    expect(after).toContain(`tallyhook_unparsed_requests_total{face="intake",kind="${kind}"} 1`);
  expect(relay.log.filter(({ msg }) => msg === 'a request could not be read')).toMatchObject(
    ['tls', 'proxy_protocol', 'repeated_length'].map((kind) => ({ kind, remote: '127.0.0.1' })),
  );
  await expect.poll(() => deliveries(relay.database)).toMatchObject([{ remote_address: '127.0.0.1' }]);
});
