/** What may be an alias of an action (contract 02, 2.13). */
import { descriptionSchema, exportedSchemas, MAX_NAME_CHARS, nameSchema, packSchema } from '../../core/pack-content.ts'
import { createPause } from '../../lib/concurrency/index.ts'
import { compileSchema, type JsonSchema, type SchemaProblem } from '../../lib/schema/index.ts'
import { compileFormat } from './format.ts'
import type { AliasDefinition, AliasFormat } from './types.ts'

const MAX_FORMATS = 100
const MAX_FORMAT_CHARS = 1_000
/** Instructions of the expressions of all formats: more than a thousand captures. */
export const MAX_ALIAS_INSTRUCTIONS = 50_000

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
    enabled: { type: ['boolean', 'null'] },
    action_ref: { type: 'string', maxLength: 2 * MAX_NAME_CHARS, pattern: '^[^.\\s]+\\.\\S+$' },
    formats: {
      type: 'array',
      maxItems: MAX_FORMATS,
      items: {
        type: ['string', 'object'],
        minLength: 1,
        maxLength: MAX_FORMAT_CHARS,
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
    ...exportedSchemas,
  },
}

/**
 * @param given with the pack it is of
 * @returns `warnings`: formats that no command can match
 */
export async function checkAlias(
  given: unknown,
): Promise<{ definition: AliasDefinition; warnings: SchemaProblem[] } | { problems: SchemaProblem[] }> {
  const problem = compileSchema(aliasSchema).find(given)
  if (problem !== undefined) return { problems: [problem] }
  const definition = fill(given as GivenAlias) // has passed its schema
  const warnings: SchemaProblem[] = []
  const pause = createPause()
  let instructions = 0
  for (const { text, path, where } of formatsOf(definition)) {
    await pause()
    try {
      instructions += compileFormat(text).size
    } catch (error) {
      warnings.push({ path, message: `${where}: ${error instanceof Error ? error.message : String(error)}` })
    }
    if (instructions <= MAX_ALIAS_INSTRUCTIONS) continue
    const message =
      `${where}: up to here, the formats of the alias have more than ${MAX_ALIAS_INSTRUCTIONS} instructions; ` +
      'write shorter repetitions, or divide it into several aliases'
    return { problems: [{ path, message }] }
  }
  return { definition, warnings }
}

function* formatsOf({ formats }: AliasDefinition): Generator<{ text: string; path: string[]; where: string }> {
  for (const [i, item] of formats.entries()) {
    const where = `formats[${i}]`
    if (typeof item === 'string') yield { text: item, path: ['formats', String(i)], where }
    else
      for (const [j, text] of item.representation.entries())
        yield { text, path: ['formats', String(i), 'representation', String(j)], where }
  }
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
  return { ...given, representation: [given.representation].flat() }
}
