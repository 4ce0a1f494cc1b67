// The environment of a service under test, in our process or in one of its own.

import { amqpUrl } from './bus.ts';
import { ANSWER_DEADLINE_MS } from './patience.ts';
import { SECRET } from './sender.ts';

export const serviceEnv = ({ databaseUrl, exchange }: { databaseUrl: string; exchange: string }) => ({
  HOST: '127.0.0.1',
  PORT: '0',
  OPERATOR_PORT: '0',
  DATABASE_URL: databaseUrl,
  AMQP_URL: amqpUrl(),
  AMQP_EXCHANGE: exchange,
  SIGNING_SECRETS: SECRET,
  ENVIRONMENT: 'test',
  METRICS_OPEN: 'true',
  ANSWER_DEADLINE_MS,
  API_REQUESTS_PER_MINUTE: '100000', // tests poll often
});
