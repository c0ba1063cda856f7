/** Aliases of actions for chat (contract 02, 2.13): what may be one, and registering those of a pack. */
import type { Database, Step } from '../../db/index.ts'
import { newId } from '../../core/ids.ts'
import {
  checkPackDefinitions,
  descriptionSchema,
  isGone,
  MAX_NAME_CHARS,
  nameSchema,
  packSchema,
  type PackDefinitions,
  type Registration,
} from '../../core/pack-content.ts'
import { compilePattern, compileSchema, type JsonSchema, type SchemaProblem } from '../../lib/schema/index.ts'
import type { PackStore } from './store.ts'
import type { AliasDefinition, AliasFormat, AliasRecord } from './types.ts'
import { shown } from '../../lib/text/index.ts'
import { writeJson } from '../../lib/json/index.ts'

const MAX_FORMATS = 100
const MAX_FORMAT_CHARS = 1_000

const format: JsonSchema = { type: 'string', minLength: 1, maxLength: MAX_FORMAT_CHARS }
const extra: JsonSchema = { type: ['object', 'null'] }
const flag: JsonSchema = { type: 'boolean' }

const aliasSchema: JsonSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['name', 'action_ref', 'formats'],
  properties: {
    name: nameSchema,
    pack: packSchema,
    description: descriptionSchema,
    enabled: flag,
    action_ref: { type: 'string', maxLength: 2 * MAX_NAME_CHARS, pattern: '^[^.\\s]+\\.\\S+$' },
    formats: {
      type: 'array',
      minItems: 1,
      maxItems: MAX_FORMATS,
      items: {
        type: ['string', 'object'],
        minLength: 1,
        maxLength: MAX_FORMAT_CHARS,
        additionalProperties: false,
        required: ['representation'],
        properties: {
          display: { type: 'string', maxLength: MAX_FORMAT_CHARS },
          representation: { type: ['array', 'string'], minItems: 1, maxItems: MAX_FORMATS, items: format },
          match_multiple: flag,
        },
      },
    },
    ack: {
      type: ['object', 'null'],
      additionalProperties: false,
      properties: { enabled: flag, format: { type: 'string' }, append_url: flag, extra },
    },
    result: {
      type: ['object', 'null'],
      additionalProperties: false,
      properties: { enabled: flag, format: { type: 'string' }, extra },
    },
    extra,
    immutable_parameters: { type: ['object', 'null'] },
  },
}

/** @param given with the pack it is of */
export function checkAlias(given: unknown): { definition: AliasDefinition } | { problems: SchemaProblem[] } {
  const problem = compileSchema(aliasSchema).find(given)
  if (problem !== undefined) return { problems: [problem] }
  const definition = fill(given as GivenAlias) // has passed its schema
  const problems: SchemaProblem[] = []
  for (const [i, item] of definition.formats.entries()) {
    const texts = typeof item === 'string' ? [item] : item.representation
    for (const [j, text] of texts.entries()) {
      const why = problemOfFormat(text)
      const path = ['formats', String(i), ...(typeof item === 'string' ? [] : ['representation', String(j)])]
      if (why !== undefined) problems.push({ path, message: `formats[${i}]: ${why}` })
    }
  }
  return problems.length > 0 ? { problems } : { definition }
}

type GivenAlias = { [K in keyof AliasDefinition]?: AliasDefinition[K] | null } & { formats: GivenFormat[] }
type GivenFormat = string | { display?: string; representation: string | string[]; match_multiple?: boolean }

function fill(given: GivenAlias): AliasDefinition {
  return {
    name: given.name ?? '',
    pack: given.pack ?? '',
    description: given.description ?? '',
    enabled: given.enabled ?? true,
    action_ref: given.action_ref ?? '',
    formats: given.formats.map(fillFormat),
    ack: given.ack ?? {},
    result: given.result ?? {},
    extra: given.extra ?? {},
    immutable_parameters: given.immutable_parameters ?? {},
  }
}

function fillFormat(given: GivenFormat): string | AliasFormat {
  if (typeof given === 'string') return given
  const representation = [given.representation].flat()
  return {
    display: given.display ?? representation[0] ?? '',
    representation,
    ...(given.match_multiple === undefined ? {} : { match_multiple: given.match_multiple }),
  }
}

/** `{{ name }}` and `{{ name = default }}` stand in a regular expression. */
function problemOfFormat(text: string): string | undefined {
  const names = new Set<string>()
  let why: string | undefined
  const rest = text.replace(/\{\{([^]*?)\}\}/g, (capture, inner: string) => {
    const [, name] = /^\s*(\w+)\s*(?:=[^]*)?$/.exec(inner) ?? []
    if (name === undefined) why ??= `"${shown(capture)}" is neither {{ name }} nor {{ name = default }}`
    else if (names.has(name)) why ??= `{{ ${shown(name)} }} is there twice`
    else names.add(name)
    return '(.+?)'
  })
  if (why !== undefined) return why
  if (/\{\{|\}\}/.test(rest)) return `"${shown(text)}" has {{ without }}, or }} without {{`
  try {
    compilePattern(rest)
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : 'it is no regular expression'
  }
}

/** Ids stay. Invalid definitions do not affect the others. */
export async function registerAliases(
  { database, store }: { database: Pick<Database, 'write'>; store: PackStore },
  content: PackDefinitions,
): Promise<Registration> {
  const { definitions, problems } = await checkPackDefinitions(content, 'Alias', (given) =>
    checkAlias(withPack(given, content.pack)),
  )
  const existing = new Map(store.aliasesOfPack(content.pack).map((alias) => [alias.name, alias]))
  const steps: Step[] = []
  for (const definition of definitions) {
    const before = existing.get(definition.name)
    const record = recordOf(definition, before?.id ?? newId())
    if (before === undefined) steps.push(store.insertAlias(record))
    else if (writeJson(before) !== writeJson(record)) steps.push(store.updateAlias(record))
  }
  const gone = [...existing.values()].filter((alias) => isGone(alias, content, definitions))
  steps.push(...gone.map(({ id }) => store.deleteAlias(id)))
  if (steps.length > 0) await database.write({ steps, facts: [] })
  return { registered: definitions.length, removed: gone.length, problems }
}

function withPack(given: unknown, pack: string): unknown {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return given
  return { ...given, pack: (given as { pack?: unknown }).pack ?? pack }
}

function recordOf(definition: AliasDefinition, id: string): AliasRecord {
  const { pack, name } = definition
  return { id, uid: `action_alias:${pack}:${name}`, ref: `${pack}.${name}`, ...definition }
}
