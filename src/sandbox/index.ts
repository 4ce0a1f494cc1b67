// The stand-in for the conversion service, as a developer runs it. Shares no code with the intake.
// The door of this room: other rooms import from this file alone.

export { type Account, type Accounts, createAccounts } from './accounts/accounts.ts';
export {
  ACCOUNT_RANGES,
  checkExpiry,
  checkName,
  checkWebhookUrl,
  newSigningSecret,
} from './accounts/checks.ts';
export { createSessions } from './accounts/sessions.ts';
export { TIER_NAMES } from './accounts/tiers.ts';
export { SCOPES, tokenState } from './accounts/tokens.ts';
export { type Programs, findFfmpeg } from './engine/ffmpeg.ts';
export {
  CORRUPT_CLIP,
  isStandInClip,
  makeCorruptClip,
  makeSampleClip,
  makeStandInClip,
  SAMPLE_CLIP,
} from './files/clips.ts';
export { type FileServer, startFileServer } from './files/file-server.ts';
export { signInAddress } from './dashboard/session-gate.ts';
export { type Sandbox, startSandbox } from './sandbox.ts';
export { DEFAULT_SETTINGS, ENGINE_CHOICES, type Settings } from './settings.ts';
export { IN_MEMORY, isServed } from './store/database.ts';
export { openStore, type Store } from './store/store.ts';
export { FLOOD_MAX_COPIES, NO_CHAOS } from './webhooks/chaos.ts';
export { EVENT_KINDS } from './webhooks/notifications.ts';
