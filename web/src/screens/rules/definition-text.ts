/** The definition of a rule as a file of it: what `svc rule create` reads. */
import type { RuleDefinition } from '../../api/records.ts'
import { writeJson } from '../../json.ts'

export type DefinitionForm = 'yaml' | 'json'

/** Loads what writes YAML when it is first needed. @throws Error when that cannot be loaded */
export async function definitionText(definition: RuleDefinition, form: DefinitionForm): Promise<string> {
  if (form === 'json') return `${writeJson(definition, 2)}\n`
  const [{ dump }, { exactDumpSchema }] = await Promise.all([
    import('js-yaml'),
    import('../../../../src/lib/text/yaml.ts'),
  ])
  // Whatever version 1.1 would take for something else stands in quotes.
  return dump(definition, { schema: exactDumpSchema, noRefs: true, lineWidth: -1 })
}
