// `tallyhook log`: what operators read and changed.

import { nounCommand } from '../../terminal/command.ts';
import { listHelp, listVerb } from '../kernel/list/list.command.ts';

const help = `The operator log: who read a body, exported, replayed, released, discarded, decided about
an entry of the outbox, or changed a token.

  log                   the newest first
${listHelp('operator-log')}`;

const list = listVerb('operator-log', 'line');

export const operatorLog = nounCommand('log', { help, verbs: { list }, otherwise: list });
