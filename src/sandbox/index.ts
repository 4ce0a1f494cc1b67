// The stand-in for the conversion service, as a developer runs it. Shares no code with the intake.
// The door of this room: other rooms import from this file alone.

export { type Account, type Accounts, createAccounts } from './accounts/accounts.ts';
export { TIER_NAMES } from './accounts/tiers.ts';
export { SCOPES } from './accounts/tokens.ts';
export { urlFault } from './addresses/rule.ts';
export { type Programs, findFfmpeg } from './engine/ffmpeg.ts';
export { isStandInClip, makeCorruptClip, makeSampleClip, makeStandInClip } from './files/clips.ts';
export { type FileServer, startFileServer } from './files/file-server.ts';
export { type Sandbox, startSandbox } from './sandbox.ts';
export { DEFAULT_SETTINGS, ENGINE_CHOICES, type Settings } from './settings.ts';
export { IN_MEMORY, isServed } from './store/database.ts';
export { openStore } from './store/store.ts';
export { FLOOD_MAX_COPIES, NO_CHAOS } from './webhooks/chaos.ts';
export { EVENT_KINDS } from './webhooks/notifications.ts';
