// The names of sources, for the intake and for commands, which must not load the intake's packages.

export const DEFAULT_SOURCE = 'default';

/** No dots, since the name is the last word of the routing key. Short, since AMQP limits keys to 255 bytes. */
export const SOURCE_NAME = /^[a-z0-9][a-z0-9_-]{0,62}$/;

/** Requests for any name that is no source are recorded under this one. */
export const UNKNOWN_SOURCE = 'unknown';
