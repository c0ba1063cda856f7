/**
 * What StackStorm calls things that have another name here: the one table of them. docs/compatibility.md explains it to
 * users; `[compat] stackstorm` says whether svc accepts the other names. What is stored has our names only.
 */

/** Trigger types of the pack `core`, without `core.st2.`, which is `core.svc.` here. */
export const builtinTriggerNames = [
  'webhook',
  'IntervalTimer',
  'DateTimer',
  'CronTimer',
  'generic.actiontrigger',
  'generic.notifytrigger',
  'generic.inquiry',
  'action.file_written',
  'sensor.process_spawn',
  'sensor.process_exit',
  'key_value_pair.create',
  'key_value_pair.update',
  'key_value_pair.value_change',
  'key_value_pair.delete',
] as const

/** Events of the stream: what follows `st2.` in their names; a star stands for any characters. */
const events = [
  'execution__create',
  'execution__update',
  'execution__delete',
  'execution.output__create',
  'liveaction__create',
  'liveaction__update',
  'liveaction__delete',
  'announcement__*',
  'actionalias__create',
  'actionalias__update',
  'actionalias__delete',
] as const

const eventName = new RegExp(
  `^(st2|svc)(\\.(?:${events.map((event) => event.replaceAll('.', '\\.').replace('*', '.*')).join('|')}))$`,
  's',
)

/** A kind of name, and where it is read. */
export type NameKind =
  | 'header'
  | 'query'
  | 'hook'
  | 'triggerType'
  | 'triggerName'
  | 'scope'
  | 'template'
  | 'workflowFunction'
  | 'workflowVariable'
  | 'variable'
  | 'program'

const prefixed = (prefix: string, names: readonly string[], ours: string): readonly (readonly [string, string])[] =>
  names.map((name) => [`${prefix}${name}`, `${ours}${name}`] as const)

/** Variables of the environment of actions. */
export const actionVariables: readonly (readonly [theirs: string, ours: string])[] = [
  ...prefixed('ST2_ACTION_', ['PACK_NAME', 'EXECUTION_ID', 'API_URL', 'AUTH_TOKEN', 'DEBUG'], 'SVC_ACTION_'),
  ['ST2_API_URL', 'SVC_ACTION_API_URL'],
  ['ST2_AUTH_TOKEN', 'SVC_ACTION_AUTH_TOKEN'],
]

/** Variables of the command line client: `ST2_API_KEY` is `SVC_API_KEY` here. */
export const clientVariables = [
  'BASE_URL',
  'AUTH_URL',
  'API_URL',
  'STREAM_URL',
  'API_VERSION',
  'CACERT',
  'AUTH_TOKEN',
  'API_KEY',
  'BASIC_AUTH',
  'CONFIG_FILE',
  'CLI_SKIP_CONFIG',
  'COLORIZE',
] as const

const programs = [
  'register-content',
  'validate-pack',
  'validate-pack-config',
  'rule-tester',
  'trigger-refire',
  'apply-rbac-definitions',
  'generate-symmetric-crypto-key',
  'purge-executions',
  'purge-trigger-instances',
  'purge-traces',
  'purge-rule-enforcements',
  'purge-workflows',
  'purge-task-executions',
  'purge-tokens',
] as const

const ours: Readonly<Record<NameKind, ReadonlyMap<string, string>>> = {
  // In lower case, as Node gives them.
  header: new Map([
    ['st2-api-key', 'svc-api-key'],
    ['st2-trace-tag', 'svc-trace-tag'],
    ['st2-context', 'svc-context'],
  ]),
  query: new Map([['st2-api-key', 'svc-api-key']]),
  hook: new Map([['st2', 'svc']]),
  triggerType: new Map(prefixed('core.st2.', builtinTriggerNames, 'core.svc.')),
  triggerName: new Map(prefixed('st2.', builtinTriggerNames, 'svc.')),
  scope: new Map([
    ['st2kv.system', 'svckv.system'],
    ['st2kv.user', 'svckv.user'],
  ]),
  template: new Map([['st2kv', 'svckv']]),
  workflowFunction: new Map([['st2kv', 'svckv']]),
  workflowVariable: new Map([['st2', 'svc']]),
  variable: new Map(prefixed('ST2_', clientVariables, 'SVC_')),
  program: new Map([['st2', 'svc'], ['st2ctl', 'svcctl'], ...prefixed('st2-', programs, 'svc-')]),
}

const theirs: ReadonlyMap<string, ReadonlyMap<string, string>> = new Map(
  Object.entries(ours).map(([kind, names]) => [kind, new Map([...names].map(([old, own]) => [own, old]))]),
)

/** Our name of what StackStorm calls by this one; undefined: StackStorm has no such name, or it is the same here. */
export const ourName = (kind: NameKind, name: string): string | undefined => ours[kind].get(name)

/** StackStorm's name of what is called by this one here; undefined: it has none, or it is the same. */
export const theirName = (kind: NameKind, name: string): string | undefined => theirs.get(kind)?.get(name)

/** Every name of a kind: StackStorm's, then ours. */
export const namesOf = (kind: NameKind): ReadonlyMap<string, string> => ours[kind]

/** `st2.execution__update` for `svc.execution__update`; undefined: StackStorm has no such event. */
export function theirEvent(name: string): string | undefined {
  const [, prefix, rest] = eventName.exec(name) ?? []
  return prefix === 'svc' && rest !== undefined ? `st2${rest}` : undefined
}

/** `svc.execution__update` for `st2.execution__update`; undefined: it is no event of StackStorm. */
export function ourEvent(name: string): string | undefined {
  const [, prefix, rest] = eventName.exec(name) ?? []
  return prefix === 'st2' && rest !== undefined ? `svc${rest}` : undefined
}

/** Whether a name or glob of an event begins as those of StackStorm do. */
export const isTheirEventPattern = (pattern: string): boolean => pattern.startsWith('st2.')

/** The same name or glob for our events. */
export const ourEventPattern = (pattern: string): string => pattern.replace(/^st2\./, 'svc.')

/** A sentence to put behind an error about a name that svc does not know; empty: nobody has such a name. */
export function adviceOnName(kind: NameKind, name: string): string {
  const own = ourName(kind, name)
  return own === undefined ? '' : ` ${nameHere(own)}`
}

/** @param own our name */
export const nameHere = (own: string): string =>
  `Its name here is "${own}"; with [compat] stackstorm = True, StackStorm's names are accepted too.`
