/** Checks definitions of trigger types (contract 05, 5.1). Pure functions. */
import { defaultPack } from '../../../core/pack-content.ts'
import {
  checkDraft4,
  compileSchema,
  usableDraft4,
  type JsonSchema,
  type SchemaProblem,
} from '../../../lib/schema/index.ts'
import { compileSecrets } from '../../../lib/secrets/index.ts'
import { TriggerTypeRequest, type TriggerTypeDefinition } from '../types.ts'

/** Finds secrets that cannot be masked. Compiles all patterns, also those without a check. */
function problemOfSecrets(schema: JsonSchema): string | undefined {
  try {
    compileSecrets(schema)
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
  return undefined
}

/**
 * Checks a definition and fills in defaults.
 *
 * @returns `warnings`: parts of the schemas that svc cannot check
 */
export function checkTypeDefinition(
  given: unknown,
): { definition: TriggerTypeDefinition; warnings: SchemaProblem[] } | { problems: SchemaProblem[] } {
  const problem = compileSchema(TriggerTypeRequest).find(given)
  if (problem !== undefined) return { problems: [problem] }
  const definition = fillDefinition(given as TriggerTypeRequest) // has passed its schema
  const problems: SchemaProblem[] = []
  const warnings: SchemaProblem[] = []
  for (const name of ['payload_schema', 'parameters_schema'] as const) {
    const problemIn = (schema: JsonSchema): string | undefined => checkDraft4(schema) ?? problemOfSecrets(schema)
    const why = problemIn(definition[name])
    if (why === undefined) continue
    const left = problemIn(usableDraft4(definition[name]))
    if (left === undefined) warnings.push({ path: [name], message: `${name}: ${why}; svc does not check this part` })
    else problems.push({ path: [name], message: `${name}: ${left}` })
  }
  return problems.length === 0 ? { definition, warnings } : { problems }
}

function fillDefinition(given: TriggerTypeRequest): TriggerTypeDefinition {
  return {
    name: given.name,
    pack: given.pack ?? defaultPack,
    description: given.description ?? '',
    payload_schema: given.payload_schema ?? {},
    parameters_schema: given.parameters_schema ?? {},
    tags: (given.tags ?? []).map(({ name, value }) => ({ name, value })),
    ...(typeof given.metadata_file === 'string' ? { metadata_file: given.metadata_file } : {}),
  }
}

/** Whether the type has no parameters, and so exactly one trigger, with the name of the type. */
export function takesNoParameters({
  parameters_schema: schema,
}: Pick<TriggerTypeDefinition, 'parameters_schema'>): boolean {
  return Object.keys(schema).length === 0
}
