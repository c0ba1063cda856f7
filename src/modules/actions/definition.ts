/** Checks action definitions (contract 02, 2.1–2.4). Pure functions. */
import { entryPointHere } from '../../core/compat/index.ts'
import { defaultPack, entryPointFile, exportedSchemas } from '../../core/pack-content.ts'
import { keepOf } from '../../core/keep.ts'
import { createPause } from '../../lib/concurrency/index.ts'
import {
  canonical,
  checkParameterSchema,
  createSchemaRoom,
  compileParameters,
  compileSchema,
  unusablePatternIn,
  isObject,
  type ParameterSchema,
  type Schema,
  type SchemaProblem,
} from '../../lib/schema/index.ts'
import { readNotify } from '../../core/notify.ts'
import { findTemplates } from '../../core/template-values.ts'
import { mergeParameters, overridableAttributes, type ParameterSchemas } from './parameters.ts'
import { actionDefinitionSchema, type ActionDefinition, type ActionRecord } from './types.ts'
import { nearestNumber, writeJson } from '../../lib/json/index.ts'

/** One reason why a definition is refused; `path` leads through the definition: `['parameters', 'cmd']`. */
export type DefinitionProblem = SchemaProblem

/** Names of runners that older content uses. */
const olderRunnerNames: Readonly<Record<string, string>> = {
  'run-local': 'local-shell-cmd',
  'run-local-script': 'local-shell-script',
  'run-remote': 'remote-shell-cmd',
  'run-remote-script': 'remote-shell-script',
  'run-python': 'python-script',
}

export type CheckedDefinition =
  { definition: ActionDefinition; warnings: DefinitionProblem[] } | { problems: DefinitionProblem[] }

/**
 * Checks a definition as its author wrote it and fills in what was left out. Compiling a schema takes up to a
 * millisecond, so others work in between.
 *
 * @param runnerOf finds the parameters of a runner type
 * @param schema of definitions as they are written there
 * @returns `warnings`: values that no run could use
 */
export async function checkActionDefinition(
  given: unknown,
  runnerOf: (name: string) => ParameterSchemas | undefined,
  schema: Schema = actionDefinitionSchema,
): Promise<CheckedDefinition> {
  const problem = compileSchema(schema).find(given)
  if (problem !== undefined) return { problems: [problem] }
  const definition = fillActionDefinition(given as Partial<ActionDefinition>) // has passed its schema

  const problems: DefinitionProblem[] = []
  const entryPointProblem = checkEntryPoint(definition.entry_point)
  if (entryPointProblem !== undefined) problems.push({ path: ['entry_point'], message: entryPointProblem })

  const pause = createPause()
  const parameterProblems = await checkParameterSchemas(definition.parameters, pause)
  problems.push(...parameterProblems)
  const runnerParameters = runnerOf(definition.runner_type)
  const warnings = Object.entries(definition.parameters).flatMap(([name, schema]) => warnOfPattern(name, schema))
  if (runnerParameters === undefined) {
    problems.push({ path: ['runner_type'], message: `RunnerType ${definition.runner_type} is not found` })
  } else if (parameterProblems.length === 0) {
    problems.push(...checkOverrides(definition, runnerParameters), ...checkPositions(definition.parameters))
    warnings.push(...(await checkValues(definition.parameters, runnerParameters, pause)))
  }
  return problems.length === 0 ? { definition, warnings } : { problems }
}

/**
 * Whether a definition equals a stored record, which was checked before: compiling the checks at every start would take
 * longer than all other work.
 */
export function isStored(given: unknown, record: ActionRecord): boolean {
  if (!isObject(given)) return false
  const definition: Record<string, unknown> = { ...fillActionDefinition(given) }
  const isKnown = (name: string): boolean => Object.hasOwn(definition, name) || Object.hasOwn(exportedSchemas, name)
  if (Object.keys(given).some((name) => !isKnown(name) && given[name] !== null)) return false
  if (record.keep !== undefined && definition['keep'] === undefined) return false
  const stored: Record<string, unknown> = { ...record }
  return Object.entries(definition).every(([name, value]) => writeJson(stored[name]) === writeJson(value))
}

/** What was left out, filled in. @param given has passed `checkDefinition`, now or before */
export function fillActionDefinition(given: Partial<ActionDefinition>): ActionDefinition {
  const runner = given.runner_type ?? ''
  return {
    name: given.name ?? '',
    pack: given.pack ?? defaultPack,
    description: given.description ?? '',
    // Left empty, it turns the action off, as packs expect.
    enabled: given.enabled ?? given.enabled === undefined,
    runner_type: (Object.hasOwn(olderRunnerNames, runner) ? olderRunnerNames[runner] : undefined) ?? runner,
    entry_point: entryPointHere(given.pack ?? defaultPack, given.entry_point ?? ''),
    parameters: given.parameters ?? {},
    output_schema: given.output_schema ?? {},
    tags: given.tags ?? [],
    notify: isObject(given.notify) ? given.notify : readNotify(given.notify ?? {}),
    ...keepOf(given),
    ...(given.metadata_file === undefined ? {} : { metadata_file: given.metadata_file }),
  }
}

/** Undefined for a path within the pack. */
function checkEntryPoint(path: string): string | undefined {
  if (entryPointFile('actions', path) !== undefined && !path.includes('\\')) return undefined
  return 'entry_point: use a path relative to the folder actions that does not lead out of the pack'
}

/** Their names and schemas. */
async function checkParameterSchemas(
  parameters: Readonly<Record<string, unknown>>,
  pause: () => Promise<void>,
): Promise<DefinitionProblem[]> {
  const problems: DefinitionProblem[] = []
  const room = createSchemaRoom()
  for (const [name, schema] of Object.entries(parameters)) {
    await pause()
    const path = ['parameters', name]
    if (!/^[\p{L}\p{N}_]+$/u.test(name) || name === '__proto__') {
      problems.push({ path, message: `parameters: the name "${name}" may hold letters, digits and "_" only` })
      continue
    }
    const problem = checkParameterSchema(schema, room)
    if (problem !== undefined) {
      problems.push({ path: [...path, ...problem.path], message: `parameters.${name}: ${problem.message}` })
    }
  }
  return problems
}

/** The action runs without the parameter. */
function warnOfPattern(name: string, schema: unknown): DefinitionProblem[] {
  const problem = unusablePatternIn(schema)
  if (problem === undefined) return []
  const message = `parameters.${name}: ${problem.message}; svc refuses every value of this parameter`
  return [{ path: ['parameters', name, ...problem.path], message }]
}

function checkOverrides(definition: ActionDefinition, runner: ParameterSchemas): DefinitionProblem[] {
  const ref = `${definition.pack}.${definition.name}`
  const problems: DefinitionProblem[] = []
  for (const [name, schema] of Object.entries(definition.parameters)) {
    const path = ['parameters', name]
    const inherited = Object.hasOwn(runner, name) ? runner[name] : undefined
    if (inherited !== undefined) {
      for (const attribute of Object.keys(schema)) {
        if (isOverridable(attribute) || canonical(schema[attribute]) === canonical(inherited[attribute])) continue
        problems.push({
          path: [...path, attribute],
          message: `The attribute "${attribute}" for the runner parameter "${name}" in action "${ref}" cannot be overridden.`,
        })
      }
      if (inherited.immutable === true && Object.hasOwn(schema, 'immutable')) {
        problems.push({
          path: [...path, 'immutable'],
          message: `Param ${name} is declared immutable in runner. Cannot override in action.`,
        })
      }
    }
    const hasDefault = Object.hasOwn(schema, 'default') || Object.hasOwn(inherited ?? {}, 'default')
    if (schema.immutable === true && !hasDefault) {
      problems.push({ path, message: `Immutable param ${name} requires a default value.` })
    }
  }
  return problems
}

/**
 * Defaults that a run could never use, and choices that no value could be: both would show only when the action is run.
 * What a template gives is not known before.
 */
async function checkValues(
  parameters: ParameterSchemas,
  runner: ParameterSchemas,
  pause: () => Promise<void>,
): Promise<DefinitionProblem[]> {
  const problems: DefinitionProblem[] = []
  const merged = mergeParameters(runner, parameters)
  for (const name of Object.keys(parameters)) {
    await pause()
    const { default: value, ...schema } = merged[name] ?? {}
    const tell = (attribute: string, wrong: unknown, among: ParameterSchema): void => {
      const message = problemOfValue(wrong, among)
      if (message === undefined) return
      const path = ['parameters', name, ...attribute.split('.')]
      problems.push({ path, message: `parameters.${name}.${attribute}: ${message}` })
    }
    const { type, enum: choices, secret } = schema
    if (value !== undefined && value !== null && findTemplates(value) === undefined) tell('default', value, schema)
    if (type === undefined || !Array.isArray(choices)) continue
    for (const [index, choice] of choices.entries()) {
      if (choice !== null) tell(`enum.${index}`, choice, { type, ...(secret === undefined ? {} : { secret }) })
    }
  }
  return problems
}

function problemOfValue(value: unknown, schema: ParameterSchema): string | undefined {
  // Required: an optional one also takes null, which the message need not tell.
  const problem = compileParameters({ value: { ...schema, required: true } }).find({ value })
  if (problem === undefined) return undefined
  const sentence = problem.message.replace(/^value(: |\.)?/, '')
  if (schema.type === 'string' && !isObject(value) && !Array.isArray(value) && typeof value !== 'string') {
    return `${sentence}; put it in quotes, exactly as it is meant, such as ${schema.secret === true ? "'…'" : `'${writeJson(value)}'`}`
  }
  const isQuoted = typeof value === 'string' && ['integer', 'number', 'boolean'].includes(schema.type ?? '')
  return isQuoted ? `${sentence}; remove its quotes, or change the type` : sentence
}

function isOverridable(attribute: string): boolean {
  return overridableAttributes.some((name) => name === attribute)
}

function checkPositions(parameters: Readonly<Record<string, ParameterSchema>>): DefinitionProblem[] {
  const byPosition = new Map<number, string>()
  for (const [name, schema] of Object.entries(parameters)) {
    const position = nearestNumber(schema.position)
    if (typeof position !== 'number') continue
    const other = byPosition.get(position)
    if (other !== undefined) {
      return [
        {
          path: ['parameters', name, 'position'],
          message: `Parameters ${other} and ${name} have same position ${position}. Position values have to be unique.`,
        },
      ]
    }
    byPosition.set(position, name)
  }
  const positions = [...byPosition.keys()].sort((a, b) => a - b)
  const areContiguous = positions.every((position, i) => position === (positions[0] ?? 0) + i)
  return areContiguous
    ? []
    : [
        {
          path: ['parameters'],
          message: `Positions supplied [${positions.join(', ')}] for parameters are not contiguous.`,
        },
      ]
}
