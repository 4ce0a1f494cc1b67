// The alert rules of deploy/prometheus, read as Prometheus reads them, a file each.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

export const RULES = fileURLToPath(new URL('../../deploy/prometheus/rules', import.meta.url));

export type AlertRule = {
  /** The file's name without its ending: the condition. */
  readonly condition: string;
  readonly file: string;
  readonly text: string;
  readonly alert: string;
  readonly expr: string;
  readonly for: string;
  readonly keep_firing_for: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
};

type RuleFile = {
  readonly groups: readonly { readonly name: string; readonly rules: readonly AlertRule[] }[];
};

/** @throws if a file has not just one rule */
export function readAlertRules(): AlertRule[] {
  return readdirSync(RULES).map((name) => {
    const file = join(RULES, name);
    const text = readFileSync(file, 'utf8');
    const { groups } = parse(text) as RuleFile;
    const [rule, ...others] = groups.flatMap(({ rules }) => rules);
    if (rule === undefined || others.length > 0) throw new Error(`${name} has not one rule`);
    return { ...rule, condition: name.replace(/\.yml$/, ''), file, text };
  });
}

const UNITS_S = { s: 1, m: 60, h: 3_600, d: 86_400 };

/** Of a duration as the rules have them, `5m`. */
export function secondsOf(duration: string): number {
  const [, count, unit] = /^(\d+)([smhd])$/.exec(duration) ?? [];
  if (count === undefined) throw new Error(`${duration} is no duration`);
  return Number(count) * UNITS_S[unit as keyof typeof UNITS_S];
}
