/** The endpoint that registers packs again (contract 02, 2.8). */
import { packInvalid } from '../../core/errors.ts'
import { aboutCaller, route, type Caller, type Route } from '../../http/index.ts'
import type { Log } from '../../lib/log/index.ts'
import { describeProblem } from '../../lib/text/index.ts'
import type { RegisteredKind } from './register.ts'
import type { PackService, Registrations } from './service.ts'
import {
  contentPlurals,
  PackRegisterRequest,
  PackRegisterResult,
  type ContentPlural,
  type ContentType,
} from './types.ts'

const MAX_SHOWN_PROBLEMS = 100

// `Object.entries` forgets which names there are.
const types = Object.entries(contentPlurals) as [ContentType, ContentPlural][]

const typesByName = new Map<string, ContentType>(
  types.flatMap(([type, plural]): [string, ContentType][] => [
    [type, type],
    [plural, type],
  ]),
)

/** Types that belong to the program and not to packs. */
const builtinTypes = ['runner', 'rule_type', 'policy_type'] as const

export function createRegisterRoute(deps: {
  service: Pick<PackService, 'registerNamed'>
  log: Log
  /** Registers the built-in content of a type. @returns its number */
  registerTypes: Readonly<Record<(typeof builtinTypes)[number], () => Promise<number> | number>>
}): Route {
  const { service, log } = deps

  async function register(body: PackRegisterRequest, caller: Caller): Promise<PackRegisterResult> {
    const { packs, types: given, fail_on_failure: failOnFailure, keep_enabled: keeps = false, enabled = {} } = body
    const chosen = typesOf(given ?? ['all'])
    const counts: Partial<Record<ContentPlural, number>> = {}
    for (const type of builtinTypes) {
      if (chosen.has(type)) counts[contentPlurals[type]] = await deps.registerTypes[type]()
    }
    const kinds = new Set<RegisteredKind>()
    for (const [type, plural] of types) {
      if (chosen.has(type) && plural !== 'runners' && plural !== 'rule_types' && plural !== 'policy_types') {
        kinds.add(plural)
      }
    }
    const { registered, overridden, problems, warnings } = await service.registerNamed(packs ?? undefined, kinds, {
      keeps,
      given: enabled,
    })
    for (const kind of kinds) counts[kind] = registered[kind]
    const more = Object.fromEntries(
      Object.entries(overridden).flatMap(([kind, count]) => (count === 0 ? [] : [[`${kind}(overridden)`, count]])),
    )
    log.audit('pack.registered', 'Packs registered.', {
      packs: packs ?? 'all',
      types: [...chosen],
      problems: problems.length,
      warnings: warnings.length,
      ...aboutCaller(caller),
    })
    if (problems.length > 0 && failOnFailure !== false) throw packInvalid(describe(problems), cut('problems', problems))
    const sorted = Object.fromEntries(Object.entries({ ...counts, ...more }).sort(([a], [b]) => (a < b ? -1 : 1)))
    return { ...sorted, ...cut('problems', problems), ...cut('warnings', warnings) }
  }

  return route({
    surface: 'api',
    method: 'post',
    path: '/packs/register',
    permission: 'pack_register',
    summary: 'Registers the content of pack folders, and deletes records whose files are gone.',
    body: PackRegisterRequest,
    response: PackRegisterResult,
    failures: [400],
    handler: (request) => register(request.body, request),
  })
}

/** Nothing for none; the number of those that are left out for too many. */
function cut<K extends 'problems' | 'warnings'>(key: K, all: Registrations[K]): Record<string, unknown> {
  if (all.length === 0) return {}
  const shown = all.slice(0, MAX_SHOWN_PROBLEMS).map((each) => ({ ...each }))
  return { [key]: shown, ...(all.length > shown.length ? { [`more_${key}`]: all.length - shown.length } : {}) }
}

function typesOf(names: readonly string[]): Set<ContentType> {
  if (names.length === 0 || names.includes('all')) return new Set(typesByName.values())
  return new Set(names.map((name) => typesByName.get(name)).filter((type) => type !== undefined))
}

function describe(problems: Registrations['problems']): string {
  const [first] = problems
  if (first === undefined) return ''
  const more = problems.length - 1
  return `Pack "${first.pack}": ${describeProblem(first)}${more === 0 ? '' : `; and ${more} more`}`
}
