// `tallyhook log`: what operators read and changed.

import { nounCommand } from './command.ts';
import { listHelp, listVerb } from './lists.ts';

const help = `The operator log: who read a body, exported, replayed, released, discarded, decided about
an entry of the outbox, or changed a token.

  log                   the newest first
${listHelp('operator-log')}`;

const list = listVerb('operator-log', 'line');

export const operatorLog = nounCommand('log', { help, verbs: { list }, otherwise: list });
