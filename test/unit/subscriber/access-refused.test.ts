// What a subscriber says when the broker refuses its account something. test/deploy/broker-rights.test.ts has it from a broker.

import { describe, expect, test } from 'vitest';
import { settle } from '../../../src/subscriber/settings.ts';
import { toSubscriberError } from '../../../src/subscriber/topology.ts';

type Options = Parameters<typeof settle>[0];

function saidOf(refused: string, options: Partial<Options>): string {
  const { topology } = settle({
    url: 'amqp://billing:a@127.0.0.1/tallyhook',
    queue: 'billing',
    on: { completed: () => {} },
    ...options,
  });
  const closed = Object.assign(new Error(`403 (ACCESS-REFUSED) with message "ACCESS_REFUSED - ${refused}"`), {
    code: 403,
  });
  return String(toSubscriberError(closed, topology));
}

describe('the command that lets an account bind', () => {
  test.for([
    [{}, '^job\\.completed\\.[^.]+$'],
    [{ sources: ['team-a'] }, '^job\\.completed\\.team-a$'],
    [{ on: { completed: () => {}, failed: () => {} } }, '^(job\\.completed\\.[^.]+|job\\.failed\\.[^.]+)$'],
    [{ bindings: ['job.#'] }, '^job\\..*$'],
    [{ bindings: ['#'] }, '^.*$'],
  ] as const)('%j: %s', ([options, keys]) => {
    const said = saidOf("access to topic 'job.a' in exchange 'b' refused", options);
    expect(said).toMatch(
      /replaces the account's present rights, so give it to an account of this subscriber alone: /,
    );
    expect(
      said.endsWith(` set_topic_permissions -p 'tallyhook' 'billing' 'conversion.events' '^$' '${keys}'`),
    ).toBe(true);
    const { bindings } = settle({
      url: 'amqp://a',
      queue: 'a',
      on: { completed: () => {} },
      ...options,
    }).topology;
    for (const binding of bindings) expect(binding).toMatch(new RegExp(keys));
  });
});

test('the command for a queue says that it replaces what the account may', () => {
  expect(saidOf("access to queue 'billing' refused", {})).toMatch(
    /replaces the account's present rights, so give it to an account of this subscriber alone: rabbitmqctl set_permissions /,
  );
});

test('a temporary queue has no command, but the advice to take a queue of its own', () => {
  const said = saidOf("access to queue 'watch.1' refused", { queue: { temporary: 'watch.' } });
  expect(said).not.toContain('set_permissions');
  expect(said).toContain('an account and a queue of its own');
});
