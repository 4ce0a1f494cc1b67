// The documents of the interfaces, as the running service has them with the default settings.

import { type Config, loadConfig } from '../../src/config.ts';
import { describeOperators } from '../../src/operators/index.ts';
import { createAsyncApiDocument, createIntakeDocument } from '../../src/specifications/index.ts';
import { toText } from './forms.ts';

export const makeAsyncApi = (): string => toText(createAsyncApiDocument(defaults().broker));

export const makeIntake = (): string => toText(createIntakeDocument(defaults().http));

export const makeOperators = async (): Promise<string> => toText(await describeOperators(defaults()));

/** The variables that must be set are in no document. */
function defaults(): Config {
  return loadConfig({
    DATABASE_URL: 'postgres://localhost',
    AMQP_URL: 'amqp://localhost',
    SIGNING_SECRETS: 'stands-for-the-secret-of-a-sender',
  });
}
