// Callers who hang up before they are answered: nothing of theirs is kept, and nobody else notices.

import { expect, test } from 'vitest';
import { operators } from '../../support/operators.ts';
import { openRaw } from '../../support/raw-http.ts';
import { startTestService } from '../../support/service.ts';

const LISTENERS_PER_TOKEN = 8;

test.for(['/export?list=jobs', '/live'])(
  'places at %s are free again after more callers than there are places hung up at once',
  async (path) => {
    await using relay = await startTestService();
    const auditor = await operators(relay, { role: 'auditor' });
    for (let caller = 0; caller < 2 * LISTENERS_PER_TOKEN; caller++) {
      const connection = await openRaw(relay.service.operatorPort);
      connection.write(
        `GET /api/v1${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${auditor.value}\r\n\r\n`,
      );
      // At different moments of the answer's way: at once, and after ever more turns of the event loop.
      for (let turn = 0; turn < caller; turn++) await new Promise((resolve) => setImmediate(resolve));
      connection.reset();
    }

    await expect
      .poll(async () => {
        const answers = Array.from({ length: 2 }, () => auditor.fetch(path));
        const statuses = (await Promise.all(answers)).map((response) => {
          void response.body?.cancel();
          return response.status;
        });
        return statuses;
      })
      .toEqual([200, 200]);
    const alarms = relay.log.filter(({ level }) => Number(level) >= 50);
    expect(alarms).toEqual([]);
  },
);
