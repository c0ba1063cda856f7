/**
 * What words of the command line may be, which is what TAB offers for them; for things of the server, how their names
 * are found.
 */
import type { Query } from './connection/client.ts'

/** Things of the server, by name. */
export interface Names {
  /** Of their list, below the address of the API. */
  path: string
  /** Attribute that holds the name. */
  name: string
  /** Attributes that tell which one it is. Never a value that could be a secret. */
  about?: readonly string[]
  /** Only those that matter, when they are many. @param flags values of the options of the command, by attribute */
  query?: (word: string, flags: Readonly<Record<string, unknown>>) => Query | readonly Query[]
  /** How many of a list are looked at. Default: as many as there may be. */
  most?: number
  /** Other words that stand for one of them. */
  also?: readonly string[]
}

/**
 * `parameters`: assignments for the action named before, after which any word begins its command; `re-run parameters`: the
 * same for the execution named before. A list: values that are usual where others are possible, or none of interest.
 */
export type Words = 'file' | 'parameters' | 're-run parameters' | Names | readonly string[]

const byPack: NonNullable<Names['query']> = (word) => {
  const dot = word.indexOf('.')
  return dot === -1 ? {} : { pack: word.slice(0, dot) }
}

/** Of things that become ever more only the newest are offered. */
const newest = (): Query => ({ sort_desc: true })
const NEWEST = 20

const executions = {
  path: '/executions',
  name: 'id',
  about: ['action.ref', 'status'],
  most: NEWEST,
} as const

/** The executions in one of these statuses, for commands that do not take `last`. */
export function executionsIn(...statuses: readonly string[]): Names {
  return { ...executions, query: () => statuses.map((status) => ({ ...newest(), status })) }
}

/** The things of the server, by the command that is about them. */
export const names = {
  action: { path: '/actions', name: 'ref', about: ['description'], query: byPack },
  'action-alias': { path: '/actionalias', name: 'ref', about: ['description'] },
  apikey: { path: '/apikeys', name: 'id', about: ['user'] },
  execution: { ...executions, query: () => ({ ...newest(), parent: 'null' }), also: ['last'] },
  inquiry: { path: '/inquiries', name: 'id', about: ['route'] },
  key: {
    path: '/keys',
    name: 'name',
    query: (prefix, { scope, user }) => ({
      prefix,
      ...(typeof scope === 'string' ? { scope } : typeof user === 'string' ? { scope: 'user' } : {}),
      ...(typeof user === 'string' ? { user } : {}),
    }),
  },
  pack: { path: '/packs', name: 'ref', about: ['description'] },
  policy: { path: '/policies', name: 'ref', about: ['policy_type', 'resource_ref'], query: byPack },
  'policy-type': { path: '/policytypes', name: 'ref', about: ['description'] },
  role: { path: '/rbac/roles', name: 'name', about: ['description'] },
  'role-assignment': { path: '/rbac/role_assignments', name: 'id', about: ['user', 'role'] },
  rule: { path: '/rules', name: 'ref', about: ['description'], query: byPack },
  'rule-enforcement': {
    path: '/ruleenforcements',
    name: 'id',
    about: ['rule.ref', 'enforced_at'],
    query: newest,
    most: NEWEST,
  },
  'rule-type': { path: '/ruletypes', name: 'name', about: ['description'] },
  runner: { path: '/runnertypes', name: 'name', about: ['description'] },
  timer: { path: '/timers', name: 'ref', about: ['type'] },
  trace: { path: '/traces', name: 'id', about: ['trace_tag', 'start_timestamp'], query: newest, most: NEWEST },
  trigger: { path: '/triggertypes', name: 'ref', about: ['description'], query: byPack },
  'trigger-instance': {
    path: '/triggerinstances',
    name: 'id',
    about: ['trigger', 'occurrence_time'],
    query: newest,
    most: NEWEST,
  },
  user: { path: '/users', name: 'name' },
  webhook: { path: '/webhooks', name: 'parameters.url', about: ['description'] },
} as const satisfies Readonly<Record<string, Names>>

const byNoun: Readonly<Record<string, Names>> = names

/**
 * What an argument may be by its name: `<file>`, `<pack>`; or `<ref>` of what its command is about.
 *
 * @param noun the command that it is a sub-command of; empty when it is none
 */
export function wordsOfArgument(name: string, noun: string): Words | undefined {
  return wordsNamed(name) ?? (/^(?:ref|id|name|url|name-or-id|key-or-id)$/.test(name) ? find(noun) : undefined)
}

/** What the value of an option may be: `--rule <file>` is a file, but `--rule <ref>` and `--rule-ref <ref>` are rules. */
export function wordsOfOption(long: string, placeholder: string): Words | undefined {
  const isIdentifier = /^(?:ref|id|name)$/.test(placeholder)
  const noun = long.replace(/^--/, '').replaceAll('_', '-')
  return wordsNamed(placeholder) ?? (isIdentifier ? find(noun.replace(/-(?:ref|id)$/, '')) : undefined)
}

function wordsNamed(placeholder: string): Words | undefined {
  if (/^(?:file|path|htpasswd|folder)(?:$|\|)/.test(placeholder)) return 'file'
  // <key> is a key of a result, or a secret.
  return placeholder === 'key' ? undefined : find(placeholder)
}

function find(noun: string): Names | undefined {
  return Object.hasOwn(byNoun, noun) ? byNoun[noun] : undefined
}
