/** The parameters an action really has: its runner's, overlaid, and its own (contract 02, 2.4, "Merge with runner"). */
import {
  compileParameters,
  compileParametersInGroups,
  type ParameterCheck,
  type SchemaProblem,
  type ParameterSchema,
} from '../../lib/schema/index.ts'
import { createPause } from '../../lib/concurrency/index.ts'
import { findTemplates, type Templates } from '../../core/template-values.ts'
import { compileSecrets, type ReplaceSecrets } from '../../lib/secrets/index.ts'

export type ParameterSchemas = Readonly<Record<string, ParameterSchema>>

/** What an action may say about a parameter of its runner. */
export const overridableAttributes = ['default', 'description', 'enum', 'immutable', 'required'] as const

/** Runner parameters first, each with the action's overrides; then those only the action has. */
export function mergeParameters(runner: ParameterSchemas, action: ParameterSchemas): Record<string, ParameterSchema> {
  const merged = new Map<string, ParameterSchema>()
  for (const [name, schema] of Object.entries(runner)) {
    const override = Object.hasOwn(action, name) ? action[name] : undefined
    merged.set(name, override === undefined ? schema : overlay(schema, override))
  }
  for (const [name, schema] of Object.entries(action)) {
    if (!merged.has(name)) merged.set(name, schema)
  }
  return Object.fromEntries(merged)
}

function overlay(schema: ParameterSchema, override: ParameterSchema): ParameterSchema {
  const result: ParameterSchema = { ...schema }
  for (const attribute of overridableAttributes) {
    if (Object.hasOwn(override, attribute)) Object.assign(result, { [attribute]: override[attribute] })
  }
  return result
}

/** Everything about one pair of action and runner that is worth keeping between requests. */
export interface ParameterSet {
  readonly schemas: ReadonlyMap<string, ParameterSchema>
  readonly runnerNames: ReadonlySet<string>
  /** Names whose default has templates in it. */
  readonly templatedDefaults: ReadonlyMap<string, Templates>
  /** Compiles the checks of many parameters, between other work. */
  prepare(): Promise<void>
  /** Of values with plain defaults filled in; templated immutable defaults are left out, they are rendered later. */
  check(parameters: Record<string, unknown>): SchemaProblem | undefined
  /** Of one value. */
  checkOne(name: string, value: unknown): SchemaProblem | undefined
  /** Undefined when no schema marks anything as secret. */
  readonly secrets: ReplaceSecrets | undefined
}

/** Compiles lazily: reading an old execution needs no validator. */
export function createParameterSet(runner: ParameterSchemas, action: ParameterSchemas): ParameterSet {
  const merged = mergeParameters(runner, action)
  const schemas = new Map(Object.entries(merged))
  const templatedDefaults = new Map<string, Templates>()
  for (const [name, schema] of schemas) {
    const templates = findTemplates(schema.default)
    if (templates !== undefined) templatedDefaults.set(name, templates)
  }

  const compile = (): ReturnType<typeof compileParametersInGroups> =>
    compileParametersInGroups(withoutLater(merged, templatedDefaults))
  let checks: readonly ParameterCheck[] | undefined
  let secrets: { value: ReplaceSecrets | undefined } | undefined
  return {
    schemas,
    runnerNames: new Set(Object.keys(runner)),
    templatedDefaults,
    async prepare() {
      if (checks !== undefined) return
      const pause = createPause()
      const made: ParameterCheck[] = []
      for (const check of compile()) {
        made.push(check)
        await pause()
      }
      checks = made
    },
    check(parameters) {
      checks ??= [...compile()]
      for (const check of checks) {
        const problem = check(parameters)
        if (problem !== undefined) return problem
      }
      return undefined
    },
    checkOne(name, value) {
      const schema = schemas.get(name)
      return schema === undefined ? undefined : compileParameters({ [name]: schema }).find({ [name]: value })
    },
    get secrets() {
      secrets ??= { value: compileSecrets({ properties: merged }) }
      return secrets.value
    },
  }
}

/** A default that is rendered when the action runs satisfies `required` before. */
function withoutLater(
  merged: ParameterSchemas,
  templated: ReadonlyMap<string, unknown>,
): Record<string, ParameterSchema> {
  return Object.fromEntries(
    Object.entries(merged).map(([name, schema]) => [
      name,
      schema.immutable === true && templated.has(name) ? { ...schema, required: false } : schema,
    ]),
  )
}
