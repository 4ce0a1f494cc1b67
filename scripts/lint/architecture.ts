// Who may import what in src: the rules of docs/architecture.md, as tables. The linter's configuration is made of them.

export type Room = {
  /** The rooms that it may import besides `base`, each by its door, index.ts. */
  readonly may: readonly string[];
  /** Other files of these that it may import, too. */
  readonly also?: readonly string[];
  readonly because: string;
  /** Others use it without the service: it knows neither the configuration nor the metrics. */
  readonly isAlone?: true;
};

export const ROOMS = {
  base: { may: [], because: 'What all rooms stand on knows none of them.' },
  http: { may: [], because: 'What every HTTP server here stands on knows none of them.' },
  web: { may: ['http'], because: 'What every site of pages stands on knows none of them.' },
  event: {
    may: [],
    because: 'What an event is depends on no server and no client: subscribers use it alone.',
    isAlone: true,
  },
  intake: {
    may: ['event', 'http', 'ledger'],
    because: 'Nothing that a request of a sender does may depend on the broker or on operators.',
  },
  ledger: { may: ['event'], because: 'The ledger knows nobody who writes to it or reads it.' },
  relay: {
    may: ['event', 'ledger'],
    because: 'The relay knows nothing of how events came in or who asks for them again.',
  },
  operators: {
    may: ['event', 'http', 'ledger', 'specifications', 'terminal', 'web'],
    because: 'What operators set going is a write to the ledger: the relay picks it up.',
  },
  watch: {
    may: ['ledger'],
    because: 'The watch looks at what the others have left in the ledger, and knows none of them.',
  },
  origin: {
    may: [],
    because: 'The client knows the conversion service by its interface alone.',
    isAlone: true,
  },
  sandbox: {
    may: ['http', 'web'],
    because: 'The sandbox is the other party: what it shared of intake or the relay would hide shared bugs.',
    isAlone: true,
  },
  signature: {
    may: [],
    because: 'It shares no code with the intake: shared code would share its bugs.',
    isAlone: true,
  },
  specifications: {
    may: ['event', 'http', 'testing'],
    because: 'The documents are made from forms, samples and what HTTP servers answer.',
    isAlone: true,
  },
  subscriber: {
    may: ['event'],
    because: 'A subscriber knows the bus alone, as a team of its own would.',
    isAlone: true,
  },
  terminal: { may: [], because: 'What all commands print with knows none of them.' },
  testing: {
    may: ['event', 'signature', 'subscriber'],
    // By files, since the door brings the broker's client along. What a handler's test is told is what the subscriber would do.
    also: [
      'subscriber/handle.ts',
      'subscriber/handlers-form.ts',
      'subscriber/incoming.ts',
      'subscriber/notices.ts',
    ],
    because: "Samples for anybody's tests bring no part of the service along.",
    isAlone: true,
  },
  tools: {
    may: ['event', 'operators', 'signature', 'subscriber', 'terminal', 'testing'],
    also: [
      'operators/client/index.ts',
      'operators/kernel/api.command.ts',
      'operators/kernel/list/*.command.ts',
    ],
    because: 'What developers use brings no server along.',
  },
  cli: {
    may: ['ledger', 'operators', 'sandbox', 'terminal', 'tools'],
    also: ['operators/**/command.ts', 'operators/**/*.command.ts', 'sandbox/command/command.ts'],
    because: 'The command line starts the service by startService.',
  },
} as const satisfies Readonly<Record<string, Room>>;

/** The files of src itself. */
export const ROOT: Room = {
  may: ['event', 'http', 'intake', 'ledger', 'operators', 'relay', 'watch'],
  because: 'Only the command line knows itself, the sandbox, the subscriber and the client of the service.',
};

/** The commands of the sandbox are no part of the other party. */
export const SANDBOX_COMMANDS: Room = {
  may: ['terminal', 'tools'],
  because: 'The sandbox’s commands know the sandbox, and nothing of the service.',
};

/** Makes tokens without a running service. */
export const TOKENS_COMMAND: Room = {
  may: ['ledger', 'operators', 'terminal'],
  because: 'It works on the database.',
};

/** Their files are shared one by one. */
export const WITHOUT_DOOR = ['base', 'terminal', 'tools', 'cli'];

/** Of `operators`: what a file may touch, said by its name: `contract.ts`, or `orders.contract.ts`. */
export const KINDS: Readonly<Record<string, { readonly sees: readonly string[] } & Room>> = {
  contract: {
    sees: ['contract'],
    may: [],
    because: 'A contract is schemas alone: the client and the command line take it, and no server with it.',
    isAlone: true,
  },
  queries: {
    sees: ['contract', 'queries'],
    may: ['event', 'ledger'],
    because: 'Only queries have SQL, and they know no request.',
  },
  operations: {
    sees: ['contract', 'queries', 'operations'],
    may: ['event', 'http', 'ledger', 'specifications'],
    because: 'Operations are what the API does, whoever asks.',
  },
  pages: {
    sees: ['contract', 'operations', 'pages'],
    may: ['event', 'http', 'web'],
    because: 'Pages call operations, and touch no table.',
  },
  command: {
    sees: ['contract', 'command'],
    may: ['terminal'],
    because: 'Commands know the contracts and the client of the API.',
  },
};

/** Of `operators`: the nouns, each with those whose queries it stands on. Of all others it knows the contracts alone. */
export const NOUNS: Readonly<Record<string, readonly string[]>> = {
  deliveries: ['events'],
  destinations: [],
  events: [],
  incidents: [],
  jobs: [],
  'operator-log': [],
  outbox: ['events'],
  publications: [],
  quarantine: ['deliveries'],
  replays: ['events'],
  replicas: [],
  sessions: [],
  sizes: [],
  sources: [],
  statistics: [],
  tokens: [],
};

/** Of `operators`: what joins nouns and may know all of them. Nouns know their contracts alone. */
export const JOINS = ['export', 'groups', 'live', 'overview', 'search', 'story'];
