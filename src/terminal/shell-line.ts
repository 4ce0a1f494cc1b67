// A command as a person may paste it into a shell.

/** Letters, digits and signs that no shell reads as anything else. */
const PLAIN = /^[\w%+,./:@-]+$/;

/** One word of a command line, quoted for POSIX shells if it has to be. */
const wordOf = (text: string) => (PLAIN.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** `options` stand before the arguments: an argument may begin with a dash. */
export function tallyhookLine(
  verb: string,
  args: readonly string[],
  options: Readonly<Record<string, string>> = {},
): string {
  const flags = Object.entries(options).map(([name, value]) =>
    value.startsWith('-') ? wordOf(`--${name}=${value}`) : `--${name} ${wordOf(value)}`,
  );
  const dashes = args.some((arg) => arg.startsWith('-')) ? ['--'] : [];
  return ['tallyhook', verb, ...flags, ...dashes, ...args.map(wordOf)].join(' ');
}
