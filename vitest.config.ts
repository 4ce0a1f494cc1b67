import { defineConfig } from 'vitest/config';

// Tests need a Postgres and a RabbitMQ of their own: `npm test` starts both and names them in TEST_DATABASE_URL
// and TEST_AMQP_URL.
export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    pool: 'forks',
    // Most tests wait more than they compute; the default would be one worker on two cores.
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    teardownTimeout: 20_000,
  },
});
