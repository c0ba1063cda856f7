/** An API key as people fill it in, and what is asked of the server for it. */
import { readJsonText } from '../../components/form/json-text.ts'
import { quote } from '../../shell.ts'
import type { ApiKeyRecord, ApiKeyRequest, ApiKeyScope } from '../../api/records.ts'
import { isObject, writeJson } from '../../json.ts'

export interface ScopeForm {
  permissionTypes: readonly string[]
  /** Further ones that are being typed: they count as well. */
  typed: string
  /** Empty: any. */
  resourceUid: string
}

/** Days from now, as text; `never`; `at`: a time of one's own; `same`: as it is. */
export type Expiry = 'never' | '1' | '7' | '30' | '90' | '365' | 'at' | 'same'

export interface KeyForm {
  /** What it is for: `used_by` in the metadata. */
  usedBy: string
  /** JSON of what else is in the metadata; empty: nothing. */
  more: string
  /** Empty: who asks. */
  owner: string
  expiry: Expiry
  /** Local time, as browsers write it: `2030-01-31T12:00`. */
  at: string
  isLimited: boolean
  scopes: readonly ScopeForm[]
}

/** By field; of a scope by its number. */
export interface KeyProblems {
  usedBy?: string
  more?: string
  owner?: string
  at?: string
  scopes?: string
  /** Of the permission types of each scope. */
  scope?: Readonly<Record<number, string>>
  /** Of the resource of each scope. */
  resource?: Readonly<Record<number, string>>
}

export const emptyScope: ScopeForm = { permissionTypes: [], typed: '', resourceUid: '' }

/** A new key ends, and has no permission that nobody chose. */
export const emptyForm: KeyForm = {
  usedBy: '',
  more: '',
  owner: '',
  expiry: '90',
  at: '',
  isLimited: true,
  scopes: [emptyScope],
}

/** Of a preset; a key with it is refused. */
const toReplace = /<[^<>]+>/

/** What keys are often for. Parts in angle brackets are to be replaced. */
export const presets: readonly { title: string; scope: ScopeForm }[] = [
  {
    title: 'Run one action',
    scope: { ...emptyScope, permissionTypes: ['action_execute'], resourceUid: 'action:<pack>:<name>' },
  },
  {
    title: 'Send to one webhook',
    scope: { ...emptyScope, permissionTypes: ['webhook_send'], resourceUid: 'webhook:<name>' },
  },
  {
    title: 'View executions',
    scope: { ...emptyScope, permissionTypes: ['execution_list', 'execution_view', 'stream_view'] },
  },
]

export function keyFormOf({ user, metadata, expires_at: expiresAt, scopes }: ApiKeyRecord): KeyForm {
  const { used_by: usedBy, ...more } = metadata
  const isText = typeof usedBy === 'string'
  const others = isText ? more : metadata
  return {
    usedBy: isText ? usedBy : '',
    more: Object.keys(others).length === 0 ? '' : writeJson(others, 2),
    owner: user,
    expiry: expiresAt === undefined ? 'never' : 'same',
    at: '',
    isLimited: scopes !== undefined,
    scopes:
      scopes === undefined
        ? emptyForm.scopes
        : scopes.map(({ permission_types: permissionTypes, resource_uid: resourceUid = '' }) => ({
            permissionTypes,
            typed: '',
            resourceUid,
          })),
  }
}

export type KeyReading = { request: ApiKeyRequest } | { problems: KeyProblems }

const DAY_MS = 86_400_000

/**
 * @param before what it was made from; undefined: of a new key. What is as it was is not sent
 * @param now milliseconds since the epoch
 */
export function readKeyForm(form: KeyForm, before: KeyForm | undefined, now: number): KeyReading {
  const problems: KeyProblems = {}
  const request: ApiKeyRequest = {}

  if (before === undefined || form.usedBy !== before.usedBy || form.more !== before.more) {
    const read = readMetadata(form)
    if ('problem' in read) problems.more = read.problem
    else if (before !== undefined || Object.keys(read.metadata).length > 0) request.metadata = read.metadata
  }

  const owner = form.owner.trim()
  if (before === undefined ? owner !== '' : owner !== before.owner) {
    if (owner === '') problems.owner = 'Enter the owner.'
    else request.user = owner
  }

  const expiry = readExpiry(form, now)
  if ('problem' in expiry) problems.at = expiry.problem
  else if (expiry.at !== undefined && !(before?.expiry === 'never' && expiry.at === null)) {
    if (before !== undefined || expiry.at !== null) request.expires_at = expiry.at
  }

  const scopes = form.isLimited ? readScopes(form.scopes, problems) : null
  const scopesBefore = before?.isLimited === true ? readScopes(before.scopes, {}) : null
  if (writeJson(scopes) !== writeJson(scopesBefore)) request.scopes = scopes
  return Object.keys(problems).length > 0 ? { problems } : { request }
}

/** The problems without those of edited fields, which are checked again. */
export function keyProblemsAfter({ ...problems }: KeyProblems, edited: Partial<KeyForm>): KeyProblems {
  if ('more' in edited) delete problems.more
  if ('owner' in edited) delete problems.owner
  if ('expiry' in edited || 'at' in edited) delete problems.at
  if ('scopes' in edited || 'isLimited' in edited) {
    delete problems.scopes
    delete problems.scope
    delete problems.resource
  }
  return problems
}

/**
 * What the server says is wrong, at the field that it is about.
 *
 * @param path of the field in the body @returns undefined when it is about none
 */
export function keyProblemsIn(message: string, [attribute, index, part]: readonly string[]): KeyProblems | undefined {
  switch (attribute) {
    case 'scopes':
      if (index === undefined) return { scopes: message }
      return { [part === 'resource_uid' ? 'resource' : 'scope']: { [Number(index)]: message } }
    case 'expires_at':
      return { at: message }
    case 'user':
      return { owner: message }
    case 'metadata':
      return { more: message }
    default:
      return undefined
  }
}

function readMetadata({ usedBy, more }: KeyForm): { metadata: Record<string, unknown> } | { problem: string } {
  const named = usedBy.trim() === '' ? {} : { used_by: usedBy.trim() }
  if (more.trim() === '') return { metadata: named }
  const { value, mistake } = readJsonText(more)
  if (mistake !== undefined) return { problem: 'Enter JSON.' }
  if (!isObject(value)) {
    return { problem: 'Enter an object: {"team": "web"}' }
  }
  return { metadata: { ...value, ...named } }
}

/** `at` is undefined when it stays as it is, null for never. */
function readExpiry({ expiry, at }: KeyForm, now: number): { at: string | null | undefined } | { problem: string } {
  switch (expiry) {
    case 'same':
      return { at: undefined }
    case 'never':
      return { at: null }
    case 'at': {
      const time = new Date(at).getTime()
      if (Number.isNaN(time)) return { problem: 'Enter a date and a time.' }
      return time <= now ? { problem: 'Enter a time in the future.' } : { at: new Date(time).toISOString() }
    }
    default:
      return { at: new Date(now + Number(expiry) * DAY_MS).toISOString() }
  }
}

function readScopes(scopes: readonly ScopeForm[], problems: KeyProblems): ApiKeyScope[] {
  if (scopes.length === 0) problems.scopes = 'Add at least one grant.'
  const empty = scopes.findIndex((scope) => typesOf(scope).length === 0)
  if (empty !== -1) problems.scope = { [empty]: 'Choose at least one permission type.' }
  const unnamed = scopes.findIndex(({ resourceUid }) => toReplace.test(resourceUid))
  const [part] = toReplace.exec(scopes[unnamed]?.resourceUid ?? '') ?? []
  if (part !== undefined) problems.resource = { [unnamed]: `Replace ${part}.` }
  return scopes.map((scope) => ({
    permission_types: typesOf(scope),
    ...(scope.resourceUid.trim() === '' ? {} : { resource_uid: scope.resourceUid.trim() }),
  }))
}

/** Those that were chosen, and those that are being typed. */
export function typesOf({ permissionTypes, typed }: ScopeForm): string[] {
  return [...new Set([...permissionTypes, ...typed.split(/[\s,]+/).filter((type) => type !== '')])]
}

const wholePack = (uid: string): string => `Such as ${uid}, or pack:shop for the whole pack. Empty: any.`
const single = (uid: string): string => `Such as ${uid}. Empty: any.`

/** Longer names first, so that `action_alias_view` is not taken for one of `action`. */
const hints: readonly (readonly [type: string, hint: string])[] = [
  ['action_alias', single('action_alias:chat:deploy')],
  ['action', wholePack('action:shop:deploy')],
  ['api_key', 'The digest of a key: api_key:… Empty: any.'],
  ['execution', 'The action of the executions, such as action:shop:deploy, together with action_view. Empty: any.'],
  ['inquiry', 'Leave empty: users who may run the asking action may answer.'],
  ['key_value_pair', single('key_value_pair:svckv.system:name')],
  ['pack', single('pack:shop')],
  ['policy_type', single('policy_type:action:retry')],
  ['policy', single('policy:shop:one_at_a_time')],
  ['rule_enforcement', 'Leave empty: users who may view a rule may view its enforcements.'],
  ['rule', wholePack('rule:shop:on_push')],
  ['runner_type', single('runner_type:local-shell-cmd')],
  ['timer', 'The uid of a timer: timer:… Empty: any.'],
  ['trace', 'The id of a trace: trace:… Empty: any.'],
  ['trigger', single('trigger:core:svc.IntervalTimer')],
  ['user', single('user:alice')],
  ['webhook', single('webhook:deploy')],
]

/** What to write as the resource for these permission types. */
export function resourceHintFor(permissionTypes: readonly string[]): string {
  for (const permissionType of permissionTypes) {
    // Of a whole type.
    if (/_(?:list|search)$/.test(permissionType)) continue
    const found = hints.find(([type]) => permissionType.startsWith(`${type}_`))
    if (found !== undefined) return found[1]
  }
  return permissionTypes.length === 0 ? 'Empty: any.' : 'Leave empty: these permissions have no resource.'
}

/** What a key may do, on one line. */
export function summaryOf(scopes: readonly ApiKeyScope[] | undefined): string {
  if (scopes === undefined) return 'All permissions of its owner'
  return scopes
    .map(
      ({ permission_types: types, resource_uid: uid }) => `${types.join(', ')}${uid === undefined ? '' : ` on ${uid}`}`,
    )
    .join('; ')
}

export type KeyState = 'enabled' | 'disabled' | 'expired'

/** @param now milliseconds since the epoch */
export function keyStateOf({ enabled, expires_at: expiresAt }: ApiKeyRecord, now: number): KeyState {
  if (!enabled) return 'disabled'
  return expiresAt !== undefined && Date.parse(expiresAt) <= now ? 'expired' : 'enabled'
}

/** A line for a shell that shows that the key works. @param page address of the page */
export function curlLine(key: string, page: string): string {
  const url = new URL('api/v1/user', page)
  url.hash = ''
  return `curl -H ${quote(`Svc-Api-Key: ${key}`)} ${quote(url.href)}`
}

/** What people know it by. */
export function keyNameOf({ id, metadata }: Pick<ApiKeyRecord, 'id' | 'metadata'>): string {
  const { used_by: usedBy } = metadata
  return typeof usedBy === 'string' && usedBy.trim() !== '' ? withEllipsis(usedBy) : `key ${id}`
}

/** The style sheet shows three lines of it. */
const MAX_SHOWN = 1000

export function withEllipsis(text: string): string {
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text
}
