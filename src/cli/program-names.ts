/** Further names of the executable, each of which stands for a command (contract 05, 5.12; contract 10, 10.10; contract 11, 11.6). */
import { basename } from 'node:path'
import { namesOf, ourName } from '../core/compat/index.ts'
import { cliProcess } from './cli-process.ts'

const commandOf: Readonly<Record<string, readonly string[]>> = {
  'svc-apply-rbac-definitions': ['rbac', 'apply'],
  'svc-generate-symmetric-crypto-key': ['key', 'generate-crypto-key'],
  'svc-purge-executions': ['purge', 'executions'],
  'svc-purge-rule-enforcements': ['purge', 'rule-enforcements'],
  'svc-purge-task-executions': ['purge', 'workflows'],
  'svc-purge-tokens': ['purge', 'tokens'],
  'svc-purge-traces': ['purge', 'traces'],
  'svc-purge-trigger-instances': ['purge', 'trigger-instances'],
  'svc-purge-workflows': ['purge', 'workflows'],
  'svc-register-content': ['svc-register-content'],
  'svc-rule-tester': ['rule', 'test'],
  'svc-trigger-refire': ['trigger-instance', 'refire'],
  'svc-validate-pack': ['pack', 'validate'],
  'svc-validate-pack-config': ['pack', 'validate-config'],
  svcctl: ['svcctl'],
}

/** All names of the executable. */
export const programNames: readonly string[] = ['svc', ...Object.keys(commandOf)]

/** Names of StackStorm's programs, for links to the executable: `st2`, `st2ctl`, `st2-register-content`, … */
export const stackstormNames: readonly string[] = [...namesOf('program').keys()]

const calledName = (): string => basename(cliProcess().argv[1] ?? '')

/** Whether the executable was called by a name of StackStorm: it then reads that client's files and variables. */
export const isCalledAsStackstorm = (): boolean => ourName('program', calledName()) !== undefined

/** Whether the executable was called by one of `programNames`, or by StackStorm's name of that program. */
export function isCalledAs(program: string): boolean {
  const name = calledName()
  return name === program || ourName('program', name) === program
}

/** The name of the client in commands that it suggests. */
export const clientName = (): string => (isCalledAsStackstorm() ? 'st2' : 'svc')

/**
 * The variables of the client under our names. Called by a name of StackStorm, it reads `ST2_API_KEY` before
 * `SVC_API_KEY`.
 */
export function clientEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  if (!isCalledAsStackstorm()) return env
  const given = [...namesOf('variable')].flatMap(([theirs, ours]) => {
    const value = env[theirs]
    return value === undefined || value === '' ? [] : [[ours, value] as const]
  })
  return { ...env, ...Object.fromEntries(given) }
}

/** What a failure without a credential, or without an address, may come from; empty: from something else. */
export function adviceOnVariables(env: NodeJS.ProcessEnv): string {
  if (isCalledAsStackstorm()) return ''
  const ignored = [...namesOf('variable')].filter(([theirs, ours]) => Boolean(env[theirs]) && !env[ours])
  if (ignored.length === 0) return ''
  const names = ignored.map(([theirs, ours]) => `${theirs} (here ${ours})`).join(', ')
  return `Not read: ${names}. Called by the name st2, the client reads them (docs/compatibility.md).`
}

/** The arguments that `svc` would have to be called with. @param program path the executable was called by */
export function argumentsFor(program: string, args: readonly string[]): string[] {
  const called = basename(program)
  const name = ourName('program', called) ?? called
  return [...(Object.hasOwn(commandOf, name) ? (commandOf[name] ?? []) : []), ...args]
}
