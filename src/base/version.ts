// The version, which package.json alone states.

import packageJson from '../../package.json' with { type: 'json' };

export const version: string = packageJson.version;
