// A RabbitMQ of a test's own with its management API, on loopback and a port of its own.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findFreePort } from '../../scripts/services/ports.ts';
import type { RabbitmqServer } from '../../scripts/services/rabbitmq.ts';

export type Account = { readonly user: string; readonly password: string };

export type Management = {
  /** `http://user:password@127.0.0.1:<port>` */
  readonly urlFor: (account: Account) => string;
  /** What it answers to an account. `path` is below `/api`. */
  readonly ask: (
    account: Account,
    path: string,
    init?: RequestInit,
  ) => Promise<{ readonly status: number; readonly body: unknown }>;
  /** As the administrator: each call of rabbitmqctl starts an Erlang machine, which takes a second and more. @throws Error if it refuses */
  readonly administer: (path: string, method?: string, body?: object) => Promise<unknown>;
};

export async function enableManagement(broker: RabbitmqServer): Promise<Management> {
  const port = await findFreePort();
  const plugins = join(broker.dir, 'enabled_plugins');
  await writeFile(plugins, '[rabbitmq_management].\n');
  await broker.ctl(
    'eval',
    `application:load(rabbitmq_management), application:set_env(rabbitmq_management, tcp_config, [{port, ${port}}, ` +
      `{ip, "127.0.0.1"}]), rabbit_plugins:ensure("${plugins}").`,
  );

  async function ask({ user, password }: Account, path: string, init: RequestInit = {}) {
    const response = await fetch(`http://127.0.0.1:${port}/api/${path}`, {
      ...init,
      headers: {
        Authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
        'Content-Type': 'application/json',
      },
    });
    const text = await response.text();
    return { status: response.status, body: (text === '' ? null : JSON.parse(text)) as unknown };
  }

  return {
    urlFor: (account) => `http://${account.user}:${account.password}@127.0.0.1:${port}`,
    ask,
    administer: async (path, method = 'GET', body) => {
      const { username: user, password } = new URL(broker.url);
      const answer = await ask({ user, password }, path, {
        method,
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      if (answer.status >= 300)
        throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
      return answer.body;
    },
  };
}
