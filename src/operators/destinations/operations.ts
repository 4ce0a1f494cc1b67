// GET /destinations: which queues are bound to the exchange, for which events, and what is wrong with them. Never waits for RabbitMQ
// for longer than its management API is given.

import { accountOf } from '../../base/amqp/broker-connection.ts';
import { createManagementApi } from '../../base/amqp/management-api.ts';
import type { CertificateFiles } from '../../base/net/certificates.ts';
import { defineRead, type Operation } from '../kernel/operation/operation.ts';
import { queueName } from '../replays/order.contract.ts';
import { type BrokerAnswer, createBrokerAnswers } from './broker-answers.operations.ts';
import { DestinationList } from './contract.ts';
import { judge } from './judge.operations.ts';

const NOT_CONFIGURED =
  'BROKER_MANAGEMENT_URL is not set: without it RabbitMQ does not tell which queues are bound';

type Options = {
  readonly management: { readonly url: string | undefined; readonly certificates: CertificateFiles };
  readonly broker: { readonly url: string; readonly exchange: string; readonly routingPrefix: string };
  readonly configuredSources: () => readonly { readonly name: string }[];
  /** Monotonic. */
  readonly now: () => number;
};

export function createDestinationOperations(options: Options): readonly Operation[] {
  const read = createReader(options);
  return [
    defineRead({
      id: 'listDestinations',
      path: '/destinations',
      tag: 'Service',
      summary: 'Which queues are bound to the exchange, for which events, and what is wrong with them',
      description:
        'As RabbitMQ’s management API has it, where `BROKER_MANAGEMENT_URL` is set; `state` says whether it answered. For tokens that are ' +
        'not limited to some sources, since it is of all of them.',
      role: 'viewer',
      needsAllSources: true,
      answers: { 200: { description: 'All that is bound, by name.', schema: DestinationList } },
      run: async () => ({ status: 200, body: await read() }),
    }),
  ];
}

function createReader({
  management,
  broker,
  configuredSources,
  now,
}: Options): () => Promise<DestinationList> {
  const { exchange, routingPrefix } = broker;
  const { virtualHost } = accountOf(broker.url);
  const { url, certificates } = management;
  const answers =
    url === undefined
      ? undefined
      : createBrokerAnswers({ ask: createManagementApi({ url, certificates }), virtualHost, exchange, now });
  const place = { exchange, virtual_host: virtualHost };

  return async () => {
    if (answers === undefined)
      return { ...place, ...UNKNOWN, state: 'not_configured', because: NOT_CONFIGURED };
    const answer = await answers();
    if ('because' in answer) {
      const because = `RabbitMQ’s management API ${answer.because}`;
      return { ...place, ...UNKNOWN, state: 'no_answer', because };
    }
    const sources = configuredSources().map(({ name }) => name);
    const { hasMore, ...judged } = judge(answer, { routingPrefix, sources });
    return {
      ...place,
      ...judged,
      state: 'answered',
      because: null,
      at: answer.at,
      queues: namesIn(answer),
      has_more: answer.hasMore || hasMore,
    };
  };
}

const UNKNOWN = { at: null, warnings: [], items: [], queues: [], has_more: false };

/** Those that the order of a replay takes. */
const namesIn = ({ queues }: Exclude<BrokerAnswer, { because: string }>): string[] =>
  queues.map(({ name }) => name).filter((name) => queueName.safeParse(name).success);
