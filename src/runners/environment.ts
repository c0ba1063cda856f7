/** Builds a child's environment (contract 03, 3.7): the server's, then parameter `env`, then the execution's own. */
import { writeJson } from '../lib/json/index.ts'

/** Configuration overrides (`SVC_<SECTION>__<OPTION>`), some of them secrets, that only the server may see. */
const configurationPattern = /^SVC_[A-Za-z0-9]+(?:_[A-Za-z0-9]+)*?__/

/**
 * The part of the server's environment that children inherit. Computed once, because each read of `process.env` queries
 * the system.
 */
export function inheritedEnvironment(source: NodeJS.ProcessEnv = process.env): Record<string, string> {
  const inherited: Record<string, string> = {}
  for (const [name, value] of Object.entries(source)) {
    if (value !== undefined && !configurationPattern.test(name)) inherited[name] = value
  }
  // With these variables and no parent shell bash assumes that sshd started it, and sources ~/.bashrc (trap B).
  const cameBySsh = inherited['SSH_CLIENT'] !== undefined || inherited['SSH2_CLIENT'] !== undefined
  if (cameBySsh && !(Number(inherited['SHLVL']) >= 1)) inherited['SHLVL'] = '1'
  return inherited
}

/** Text of a value used as a variable: scalars as templates print them (decision 20), containers as JSON. */
export function environmentText(value: unknown): string {
  if (typeof value === 'string') return value
  if (value === null || value === undefined) return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  return writeJson(value)
}

export function childEnvironment(
  inherited: Readonly<Record<string, string>>,
  given: Readonly<Record<string, unknown>> | undefined,
  own: Readonly<Record<string, string>>,
): Record<string, string> {
  if (given === undefined) return { ...inherited, ...own }
  const texts: Record<string, string> = {}
  for (const [name, value] of Object.entries(given)) texts[name] = environmentText(value)
  return { ...inherited, ...texts, ...own }
}
