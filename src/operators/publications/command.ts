// `tallyhook publications`: every attempt to publish an event, and what the broker said.

import { nounCommand } from '../../terminal/command.ts';
import { listHelp, listVerb } from '../kernel/list/list.command.ts';

const help = `Every attempt to publish an event, and the broker's answer.

  publications list     the newest first
${listHelp('publications')}`;

export const publications = nounCommand('publications', {
  help,
  verbs: { list: listVerb('publications', 'publication') },
});
