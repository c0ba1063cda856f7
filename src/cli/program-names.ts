/** Further names of the executable, each of which stands for a command (contract 05, 5.12; contract 10, 10.10; contract 11, 11.6). */
import { basename } from 'node:path'

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

/** The arguments that `svc` would have to be called with. @param program path the executable was called by */
export function argumentsFor(program: string, args: readonly string[]): string[] {
  const name = basename(program)
  return [...(Object.hasOwn(commandOf, name) ? (commandOf[name] ?? []) : []), ...args]
}
