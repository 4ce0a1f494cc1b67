// One service for the tests of a file, since a start with a database of its own costs as much as ten tests. For tests that can be kept apart
// by source, job, token or session; a test of the environment, or of all that is there, starts a service of its own.

import { afterAll, beforeAll } from 'vitest';
import { startTestService, type TestService } from './service.ts';

/** To be called once in a file or `describe`. @returns what gives the service to a test that runs there */
export function shareTestService(options: Parameters<typeof startTestService>[0] = {}): () => TestService {
  let service: TestService | undefined;
  beforeAll(async () => {
    service = await startTestService(options);
  });
  afterAll(() => service?.[Symbol.asyncDispose]());
  return () => {
    if (service === undefined) throw new Error('the service runs during tests only');
    return service;
  };
}
