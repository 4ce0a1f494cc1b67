// The section “systemd” of docs/deploy.md, command by command as it stands there, on a systemd of the test's own: what its reader
// gets, and that nothing in the sandbox of the units keeps the program from its work. Limits of memory and threads are not tried: the
// machine may have no controllers for them.

import { beforeAll, describe, expect, test } from 'vitest';
import { findFreePort } from '../../scripts/services/ports.ts';
import { amqpUrl, type Bus, listen, newExchange } from '../support/bus.ts';
import { makeClone } from '../support/clone.ts';
import { commandsUnder } from '../support/deploy-page.ts';
import { patience } from '../support/patience.ts';
import { createRoles } from '../support/roles.ts';
import { completed, deliver, newJobId } from '../support/sender.ts';
import { maySystemdRun, type Systemd, startSystemd } from '../support/systemd.ts';
import { until } from '../support/until.ts';

/** npm downloads on a busy machine. */
const INSTALL_MS = patience(180_000);
const LIMIT_MS = 30_000;

/** A reader's terminal knows nothing of npm's own variables, of vitest's, or of the servers of this run. */
const OURS = /^(?:npm_(?!config_)|npm_config_(?:local_)?prefix$|TEST_|VITEST|NODE_|DATABASE_URL|AMQP_URL)/;
/** From npm's cache where it can. */
const OF_NPM = { npm_config_prefer_offline: 'true', npm_config_audit: 'false', npm_config_fund: 'false' };
const environment = {
  ...(Object.fromEntries(Object.entries(process.env).filter(([name]) => !OURS.test(name))) as Record<
    string,
    string
  >),
  ...OF_NPM,
};

type Roles = Awaited<ReturnType<typeof createRoles>>;

// Only root may boot a systemd, and only where namespaces and cgroups are at hand.
describe.skipIf(!maySystemdRun())('what the page on systemd installs', () => {
  let systemd: Systemd;
  let roles: Roles;
  let bus: Bus;
  let clone: string;
  let secret: string;
  const port = { intake: 0, operators: 0, second: 0 };

  /** @returns the output. @throws Error with it if the lines fail */
  async function sh(lines: string): Promise<string> {
    const env = {
      ...environment,
      MIGRATION_DATABASE_URL: roles.migrating.url,
      DATABASE_URL: roles.running.url,
      AMQP_URL: amqpUrl(),
    };
    const { code, output } = await systemd.shell(lines, { cwd: clone, env });
    if (code !== 0) throw new Error(`${lines}\nended with ${code}:\n${output}`);
    return output;
  }
  const asThePageSays = (heading: string) => sh(commandsUnder(heading).join('\n'));
  const show = async (property: string, unit = 'tallyhook') =>
    (await sh(`systemctl show --property=${property} --value ${unit}`)).trim();
  const journal = (unit = 'tallyhook') => sh(`journalctl --unit=${unit} --output=cat --no-pager`);
  const webhooks = (at = port.intake) => `http://127.0.0.1:${at}/webhooks`;
  const untilReady = (at = port.intake) =>
    until(
      'the service is ready',
      async () => ((await fetch(`http://127.0.0.1:${at}/readyz`)).ok ? true : undefined),
      { limitMs: LIMIT_MS },
    );
  async function expectDelivery(at = port.intake): Promise<void> {
    const jobId = newJobId();
    expect(await deliver(webhooks(at), completed(jobId), { secret })).toMatchObject({ status: 202 });
    await until('its event is published', () => bus.ids().find((id) => id.includes(jobId)), {
      limitMs: LIMIT_MS,
    });
  }

  beforeAll(async () => {
    await using resources = new AsyncDisposableStack();
    const exchange = newExchange();
    bus = resources.use(await listen(exchange));
    roles = resources.use(await createRoles());
    clone = resources.use(await makeClone()).folder;
    systemd = resources.use(await startSystemd());
    const settingsWith = async () => {
      const [intake, operators] = [await findFreePort(), await findFreePort()];
      const all = Object.entries({ AMQP_EXCHANGE: exchange, PORT: intake, OPERATOR_PORT: operators });
      return { intake, operators, text: all.map(([name, value]) => `${name}=${value}\n`).join('') };
    };
    const [first, second] = [await settingsWith(), await settingsWith()];
    port.intake = first.intake;
    port.operators = first.operators;
    port.second = second.intake;
    // What the page expects of the machine: a Node, and the reader's own settings.
    await sh(`install '${process.execPath}' /usr/local/bin/node`);
    await asThePageSays('Install the program');
    await asThePageSays('Files with its secrets');
    await sh(`printf '%s' '${first.text}' > /etc/tallyhook/tallyhook.env`);
    await sh(`printf '%s' '${second.text}' > /etc/tallyhook/tallyhook-2.env`);
    secret = (await sh('cat /etc/tallyhook/signing-secrets')).trim();
    const owned = resources.move();
    return () => owned.disposeAsync();
  }, INSTALL_MS);

  test('takes a delivery and publishes it, and gives out a token', async () => {
    const printed = await asThePageSays('Start the units');
    await untilReady();
    await expectDelivery();
    const [token] = /thk_live_[\w-]+/.exec(printed) ?? [];
    const asked = await fetch(`http://127.0.0.1:${port.operators}/api/v1/jobs`, {
      headers: { Authorization: `Bearer ${token}` },
    });
    expect(asked.status).toBe(200);
    expect(await journal('tallyhook-migrate')).toContain('migrated: ');
  });

  test('runs without rights, with no secret in its environment or its log, and cannot read the secrets of others', async () => {
    const pid = await show('MainPID');
    const status = await sh(`cat /proc/${pid}/status`);
    expect(status).toMatch(/^CapEff:\t0+$/m);
    expect(status).toMatch(/^NoNewPrivs:\t1$/m);
    expect(status).toMatch(/^Seccomp:\t2$/m);
    // TasksMax is 64.
    expect(Number(/^Threads:\t(\d+)/m.exec(status)?.[1])).toBeLessThan(32);
    const uid = /^Uid:\t(\d+)/m.exec(status)?.[1];
    expect(Number(uid)).toBeGreaterThan(0);
    const secrets = [secret, new URL(roles.running.url).password, new URL(amqpUrl()).password];
    const shown = (await sh(`cat /proc/${pid}/environ`)) + (await journal());
    expect(secrets.filter((each) => shown.includes(each))).toEqual([]);
    const read = (path: string) =>
      systemd.shell(`setpriv --reuid=${uid} --regid=${uid} --clear-groups cat ${path}`);
    expect(await read('/etc/hostname')).toMatchObject({ code: 0 });
    expect(await read('/etc/tallyhook/migration-database-url')).toMatchObject({ code: 1 });
    expect(await sh('ls /run/credentials')).toBe('tallyhook.service\n');
  });

  test('reads its files again at a reload, and goes on after a kill', async () => {
    await sh('systemctl reload tallyhook');
    await until(
      'the files are read again',
      async () => ((await journal()).includes('"msg":"sources loaded"') ? true : undefined),
      { limitMs: LIMIT_MS },
    );
    const killed = await show('MainPID');
    await sh('systemctl kill --signal=KILL tallyhook');
    await until('it is started again', async () => ((await show('NRestarts')) === '1' ? true : undefined), {
      limitMs: LIMIT_MS,
    });
    await untilReady();
    await expectDelivery();
    expect(await show('MainPID')).not.toBe(killed);
  });

  test('takes a new signing secret without a restart, once it may read the file itself', async () => {
    await asThePageSays('Change a signing secret without a restart');
    await untilReady();
    const pid = await show('MainPID');
    const next = 'b'.repeat(32);
    await sh(`printf '%s' '${secret},${next}' > /etc/tallyhook/signing-secrets`);
    await until(
      'the new secret is known',
      async () => {
        const { status } = await deliver(webhooks(), completed(newJobId()), { secret: next });
        return status === 202 ? true : undefined;
      },
      { limitMs: LIMIT_MS },
    );
    await expectDelivery();
    expect(await show('MainPID')).toBe(pid);
  });

  test('has a second replica under another name, and is replaced by a new version', async () => {
    await asThePageSays('A second replica on the same machine');
    await untilReady(port.second);
    await expectDelivery(port.second);

    await asThePageSays('Replace the version');
    await untilReady();
    await expectDelivery();
    await expectDelivery(port.second);
    expect(await journal()).toContain('"msg":"stopped"');
  });

  test('ends with 0 when it is stopped', async () => {
    await sh('systemctl stop tallyhook-2');
    expect([await show('Result', 'tallyhook-2'), await show('ExecMainStatus', 'tallyhook-2')]).toEqual([
      'success',
      '0',
    ]);
  });

  test('is left alone when its configuration cannot be used, and the journal says what is wrong', async () => {
    await sh('printf no-url > /etc/tallyhook/amqp-url; systemctl restart tallyhook');
    await until('it has failed', async () => ((await show('ActiveState')) === 'failed' ? true : undefined), {
      limitMs: LIMIT_MS,
    });
    expect([await show('ExecMainStatus'), await show('NRestarts')]).toEqual(['78', '0']);
    expect(await journal()).toContain('AMQP_URL must be a URL');
    await sh('printf %s "$AMQP_URL" > /etc/tallyhook/amqp-url; systemctl restart tallyhook');
    await untilReady();
  });

  test('would be killed at its start by MemoryDenyWriteExecute', async () => {
    await sh(`mkdir /etc/systemd/system/tallyhook-2.service.d
printf '[Service]\\nRestart=no\\nMemoryDenyWriteExecute=yes\\n' > /etc/systemd/system/tallyhook-2.service.d/more.conf
systemctl daemon-reload
systemctl start tallyhook-2`);
    await until(
      'it has ended',
      async () => ((await show('ActiveState', 'tallyhook-2')) === 'failed' ? true : undefined),
      {
        limitMs: LIMIT_MS,
      },
    );
    expect(['core-dump', 'signal']).toContain(await show('Result', 'tallyhook-2'));
  });
});
