import { chmod, mkdir, readdir, stat } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { accountFor, canEnter } from '../../scripts/services/account.ts';
import { createGuard } from '../../scripts/services/guard.ts';
import { makeThrowAwayFolder } from '../../scripts/services/folders.ts';
import { startRabbitmq } from '../../scripts/services/rabbitmq.ts';

test('a RabbitMQ of ours is closed to other accounts, also in a folder that was open, and runs', async () => {
  const guard = createGuard();
  try {
    const dir = `${makeThrowAwayFolder(guard)}/rabbitmq`;
    await mkdir(dir);
    await chmod(dir, 0o755); // as with the usual umask

    const rabbitmq = await startRabbitmq({ dir, guard });

    expect(await rabbitmq.ctl('eval', 'node().')).toContain('tallyhook-');
    expect(await readdir(dir)).toEqual(expect.arrayContaining(['.erlang.cookie', 'data', 'rabbitmq.log']));
    expect((await stat(dir)).mode & 0o777).toBe(0o700);
    const stranger = accountFor(); // undefined unless this is root, which alone can run as another account
    expect(stranger !== undefined && canEnter(dir, stranger)).toBe(false);
    await rabbitmq.close();
  } finally {
    await guard.close();
  }
});
