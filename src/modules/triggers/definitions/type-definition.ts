/** What may be registered as a trigger type (contract 05, 5.1). Pure functions. */
import { defaultPack, descriptionSchema, nameSchema, packSchema } from '../../../core/pack-content.ts'
import { checkDraft4, compileSchema, type JsonSchema, type SchemaProblem } from '../../../lib/schema/index.ts'
import { compileSecrets } from '../../../lib/secrets/index.ts'
import type { TriggerTypeDefinition } from '../types.ts'

/** Unknown properties are ignored, as clients of several versions send them. */
export const definitionSchema: JsonSchema = {
  type: 'object',
  required: ['name'],
  properties: {
    name: { ...nameSchema, description: 'Letters, digits, "_", "." and "-".' },
    pack: { ...packSchema, type: ['string', 'null'], description: `Default: ${defaultPack}.` },
    description: descriptionSchema,
    payload_schema: { type: ['object', 'null'], description: 'JSON schema of payloads; empty: anything.' },
    parameters_schema: {
      type: ['object', 'null'],
      description: 'JSON schema of the parameters of triggers; empty: they take none.',
    },
    tags: {
      type: ['array', 'null'],
      maxItems: 100,
      items: {
        type: 'object',
        required: ['name', 'value'],
        properties: { name: { type: 'string' }, value: { type: 'string' } },
      },
    },
    metadata_file: { type: ['string', 'null'], maxLength: 1_024 },
  },
}

/** A pattern that nothing is checked by is compiled nowhere else. */
function problemOfSecrets(schema: JsonSchema): string | undefined {
  try {
    compileSecrets(schema)
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
  return undefined
}

type GivenDefinition = { [N in keyof TriggerTypeDefinition]?: TriggerTypeDefinition[N] | null }

/** Checks a definition as its author wrote it and fills in what was left out. */
export function checkDefinition(given: unknown): { definition: TriggerTypeDefinition } | { problems: SchemaProblem[] } {
  const problem = compileSchema(definitionSchema).find(given)
  if (problem !== undefined) return { problems: [problem] }
  const definition = fillDefinition(given as GivenDefinition) // has passed its schema
  const problems = (['payload_schema', 'parameters_schema'] as const).flatMap((name) => {
    const why = checkDraft4(definition[name]) ?? problemOfSecrets(definition[name])
    return why === undefined ? [] : [{ path: [name], message: `${name}: ${why}` }]
  })
  return problems.length === 0 ? { definition } : { problems }
}

function fillDefinition(given: GivenDefinition): TriggerTypeDefinition {
  return {
    name: given.name ?? '',
    pack: given.pack ?? defaultPack,
    description: given.description ?? '',
    payload_schema: given.payload_schema ?? {},
    parameters_schema: given.parameters_schema ?? {},
    tags: (given.tags ?? []).map(({ name, value }) => ({ name, value })),
    ...(typeof given.metadata_file === 'string' ? { metadata_file: given.metadata_file } : {}),
  }
}

/** Triggers of the type have no parameters: there is one, of the type's own name. */
export function takesNoParameters({
  parameters_schema: schema,
}: Pick<TriggerTypeDefinition, 'parameters_schema'>): boolean {
  return Object.keys(schema).length === 0
}
