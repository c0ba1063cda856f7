/**
 * The completions of arguments and option values: files, fixed words, or names of resources that the server looks up.
 */
import type { Query } from './connection/client.ts'

/** How to look up the names of resources on the server. */
export interface NameSource {
  /** Path of their list, below the address of the API. */
  path: string
  /** Attribute that holds the name. */
  name: string
  /** Attributes that describe a resource. Never a value that may be a secret. */
  about?: readonly string[]
  /** Limits a long list. @param flags values of the options of the command, by attribute */
  query?: (word: string, flags: Readonly<Record<string, unknown>>) => Query | readonly Query[]
  /** Maximum number of names. Default: all. */
  limit?: number
  /** Additional words, such as `last`. */
  extraWords?: readonly string[]
}

/**
 * `parameters`: assignments for the action named before, after which any word begins its command; `re-run parameters`: the
 * same for the execution named before. A list: common values; others are possible.
 */
export type Completions = 'file' | 'parameters' | 're-run parameters' | NameSource | readonly string[]

const byPack: NonNullable<NameSource['query']> = (word) => {
  const dot = word.indexOf('.')
  return dot === -1 ? {} : { pack: word.slice(0, dot) }
}

/** For resources that keep growing, only the newest are offered. */
const newest = (): Query => ({ sort_desc: true })
const NEWEST = 20

const executions = {
  path: '/executions',
  name: 'id',
  about: ['action.ref', 'status'],
  limit: NEWEST,
} as const

/** The executions in one of these statuses, for commands that do not take `last`. */
export function executionsIn(...statuses: readonly string[]): NameSource {
  return { ...executions, query: () => statuses.map((status) => ({ ...newest(), status })) }
}

/** The resources of the server, by their command. */
export const names = {
  action: { path: '/actions', name: 'ref', about: ['description'], query: byPack },
  'action-alias': { path: '/actionalias', name: 'ref', about: ['description'] },
  apikey: { path: '/apikeys', name: 'id', about: ['user'] },
  execution: { ...executions, query: () => ({ ...newest(), parent: 'null' }), extraWords: ['last'] },
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
  job: { path: '/jobs', name: 'ref', about: ['description'], query: byPack },
  destination: { path: '/notifications/destinations', name: 'name', about: ['channel'] },
  notify: { path: '/notifications', name: 'id', about: ['destination', 'title'], limit: NEWEST },
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
    limit: NEWEST,
  },
  'rule-type': { path: '/ruletypes', name: 'name', about: ['description'] },
  runner: { path: '/runnertypes', name: 'name', about: ['description'] },
  sensor: { path: '/sensortypes', name: 'ref', about: ['description'], query: byPack },
  timer: { path: '/timers', name: 'ref', about: ['type'] },
  trace: { path: '/traces', name: 'id', about: ['trace_tag', 'start_timestamp'], query: newest, limit: NEWEST },
  trigger: { path: '/triggertypes', name: 'ref', about: ['description'], query: byPack },
  'trigger-instance': {
    path: '/triggerinstances',
    name: 'id',
    about: ['trigger', 'occurrence_time'],
    query: newest,
    limit: NEWEST,
  },
  user: { path: '/users', name: 'name' },
  webhook: { path: '/webhooks', name: 'parameters.url', about: ['description'] },
} as const satisfies Readonly<Record<string, NameSource>>

const byNoun: Readonly<Record<string, NameSource>> = names

/**
 * The completions of an argument by its name: `<file>`, `<pack>`, or `<ref>` of the resource of its command.
 *
 * @param noun the command that it is a sub-command of; empty when it is none
 */
export function completionsOfArgument(name: string, noun: string): Completions | undefined {
  return completionsNamed(name) ?? (/^(?:ref|id|name|url|name-or-id|key-or-id)$/.test(name) ? find(noun) : undefined)
}

/** The completions of an option value: `--rule <file>` is a file, but `--rule <ref>` and `--rule-ref <ref>` are rules. */
export function completionsOfOption(long: string, placeholder: string): Completions | undefined {
  const isIdentifier = /^(?:ref|id|name)$/.test(placeholder)
  const noun = long.replace(/^--/, '').replaceAll('_', '-')
  return completionsNamed(placeholder) ?? (isIdentifier ? find(noun.replace(/-(?:ref|id)$/, '')) : undefined)
}

function completionsNamed(placeholder: string): Completions | undefined {
  if (/^(?:file|path|htpasswd|folder)(?:$|\|)/.test(placeholder)) return 'file'
  // <key> is a key of a result, or a secret.
  return placeholder === 'key' ? undefined : find(placeholder)
}

function find(noun: string): NameSource | undefined {
  return Object.hasOwn(byNoun, noun) ? byNoun[noun] : undefined
}
