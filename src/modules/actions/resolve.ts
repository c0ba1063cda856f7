/**
 * From what a caller supplies to what a runner gets (contract 02, 2.4 and 2.6), in three steps: `renderParameters` when
 * the request arrives, `checkParameters` after it, `effectiveParameters` when the action runs. They change nothing.
 */
import { parametersInvalid, permissionMissing, templateFailed } from '../../core/errors.ts'
import { CONFIG_SECRETS, refusedValue } from '../../core/parameter-scope.ts'
import { compileParameters, fieldOf, represent, type ParameterSchema } from '../../lib/schema/index.ts'
import { convertParameter, conversionProblemOf, createTextRoom, type TextRoom } from './conversion.ts'
import type { ParameterSet } from './parameters.ts'
import type { Namespace, TemplateScope } from '../../lib/template/index.ts'
import { ourName } from '../../core/compat/index.ts'
import {
  adviseOnTemplate,
  createPatientRenderer,
  findTemplates,
  KEEP_AS_TEXT,
  type Templates,
} from '../../core/template-values.ts'
import type { TemplateThread, Turn } from '../../core/rendering/index.ts'

export interface EffectiveParameters {
  /** Values of the runner's parameters, null where there is none. */
  runnerParameters: Record<string, unknown>
  /** Values of the parameters that only the action declares, null where there is none. */
  actionParameters: Record<string, unknown>
}

const none: ReadonlySet<string> = new Set()

/** What the templates of a caller may read who must not read the secrets that defaults may read. */
export interface CallerView {
  user: string
  scope: TemplateScope
  /** Names of literals with secrets that the caller did not enter. */
  secretLiterals: ReadonlySet<string>
}

/** Who renders templates that take long, and on whose behalf. */
export interface Rendering {
  thread: TemplateThread
  turn: Turn
}

export interface RenderOptions {
  /**
   * Names whose supplied values are data already, whatever they look like: those of an execution that is run again, or
   * made by a rule.
   */
  literals?: ReadonlySet<string>
  /** Absent: templates of the caller read what defaults read. */
  ofCaller?: CallerView
}

/**
 * Renders templates, then converts to the declared types. The result is what an execution keeps: the supplied names,
 * and templated defaults unless they are immutable.
 *
 * @param scope for the defaults of the action, whose author sees every secret
 * @throws TEMPLATE_FAILED; PARAMETERS_INVALID for names that are not declared, before anything is rendered, and for a
 *   value that cannot be converted
 */
export async function renderParameters(
  set: ParameterSet,
  supplied: Record<string, unknown>,
  scope: TemplateScope,
  rendering: Rendering,
  { literals = none, ofCaller }: RenderOptions = {},
): Promise<Record<string, unknown>> {
  refuseSurplus(set, supplied)
  const sources = new Map<string, Source>()
  const read = { length: 0, parts: 0 }
  for (const [name, schema] of set.schemas) {
    const given = Object.hasOwn(supplied, name) ? supplied[name] : undefined
    sources.set(
      name,
      usesDefault(given, schema)
        ? defaultSource(set, name, schema)
        : { value: given, templates: literals.has(name) ? undefined : findTemplates(given, read), isDefault: false },
    )
  }
  const values = await resolveSources(set, sources, scope, rendering, ofCaller)

  const kept: [string, unknown][] = []
  for (const [name, value] of Object.entries(supplied)) {
    const source = sources.get(name)
    const isPlainDefault = source?.isDefault === true && source.templates === undefined
    kept.push([name, isPlainDefault ? value : values.get(name)])
  }
  for (const name of set.templatedDefaults.keys()) {
    if (!Object.hasOwn(supplied, name) && set.schemas.get(name)?.immutable !== true) kept.push([name, values.get(name)])
  }
  return Object.fromEntries(kept)
}

/** @throws PARAMETERS_INVALID */
function refuseSurplus({ schemas }: ParameterSet, supplied: Record<string, unknown>): void {
  const names = Object.keys(supplied)
  if (names.every((name) => schemas.has(name))) return
  const declared = Object.fromEntries([...schemas.keys()].map((name) => [name, {}]))
  const problem = compileParameters(declared)(Object.fromEntries(names.map((name) => [name, null])))
  if (problem !== undefined) throw parametersInvalid(problem)
}

/**
 * Checks what `renderParameters` gave: closed set, required, types and the rest of the schema; then immutability.
 *
 * @throws PARAMETERS_INVALID
 */
export function checkParameters(
  set: ParameterSet,
  rendered: Record<string, unknown>,
  supplied: Record<string, unknown>,
): void {
  const filled: [string, unknown][] = []
  for (const [name, schema] of set.schemas) {
    const given = Object.hasOwn(rendered, name) ? rendered[name] : undefined
    const isDefault = usesDefault(given, schema)
    if (isDefault && set.templatedDefaults.has(name)) continue
    const value = isDefault ? schema.default : given
    // Absent and null are the same for optional parameters, also where the schema is a choice that has no null.
    if (value === undefined || (value === null && schema.required !== true)) continue
    filled.push([name, value])
  }
  for (const name of Object.keys(rendered)) {
    if (!set.schemas.has(name)) filled.push([name, null])
  }
  const problem = set.check(Object.fromEntries(filled))
  if (problem !== undefined) throw parametersInvalid(problem.message, { path: ['parameters', ...fieldOf(problem)] })

  const immutable = Object.keys(supplied).filter((name) => set.schemas.get(name)?.immutable === true)
  if (immutable.length > 0) {
    throw parametersInvalid(`Override of immutable parameter(s) ${represent(immutable)} is unsupported.`, {
      parameters: immutable,
      path: ['parameters', ...immutable.slice(0, 1)],
    })
  }
}

/**
 * Fills in defaults. Kept values are data; only defaults that were not kept are rendered here.
 *
 * @param kept what `renderParameters` gave
 * @throws TEMPLATE_FAILED, PARAMETERS_INVALID
 */
export async function effectiveParameters(
  set: ParameterSet,
  kept: Record<string, unknown>,
  scope: TemplateScope,
  rendering: Rendering,
): Promise<EffectiveParameters> {
  const sources = new Map<string, Source>()
  for (const [name, schema] of set.schemas) {
    const given = Object.hasOwn(kept, name) ? kept[name] : undefined
    sources.set(
      name,
      usesDefault(given, schema)
        ? defaultSource(set, name, schema)
        : { value: given, templates: undefined, isDefault: false, isFinal: true },
    )
  }
  const values = await resolveSources(set, sources, scope, rendering)

  const runnerParameters: [string, unknown][] = []
  const actionParameters: [string, unknown][] = []
  for (const [name, source] of sources) {
    const value = values.get(name)
    const problem = source.templates === undefined || value === null ? undefined : set.checkOne(name, value)
    if (problem !== undefined) throw parametersInvalid(problem.message, { path: ['parameters', ...fieldOf(problem)] })
    ;(set.runnerNames.has(name) ? runnerParameters : actionParameters).push([name, value])
  }
  return {
    runnerParameters: Object.fromEntries(runnerParameters),
    actionParameters: Object.fromEntries(actionParameters),
  }
}

/** Where the value of a parameter comes from. */
interface Source {
  value: unknown
  /** Undefined: it has none, or is data. */
  templates: Templates | undefined
  isDefault: boolean
  /** Converted before. */
  isFinal?: true
}

/** Nothing supplied; for optional parameters null is nothing. */
function usesDefault(given: unknown, schema: ParameterSchema): boolean {
  return given === undefined || (given === null && schema.required !== true && (schema.default ?? null) !== null)
}

function defaultSource(set: ParameterSet, name: string, schema: ParameterSchema): Source {
  return { value: schema.default ?? null, templates: set.templatedDefaults.get(name), isDefault: true }
}

/** Final values, null where there is none; siblings before those that refer to them. */
async function resolveSources(
  set: ParameterSet,
  sources: ReadonlyMap<string, Source>,
  scope: TemplateScope,
  { thread, turn }: Rendering,
  ofCaller?: CallerView,
): Promise<ReadonlyMap<string, unknown>> {
  const values = new Map<string, unknown>()
  const waiting: string[] = []
  const textRoom = createTextRoom()
  let count = 0
  let isTooLong = false
  for (const [name, source] of sources) {
    if (source.templates !== undefined) {
      waiting.push(name)
      count += source.templates.count
      isTooLong ||= source.templates.isTooLong
      continue
    }
    const isPlain = source.isDefault || source.isFinal === true
    values.set(name, isPlain ? source.value : converted(set, name, source.value, textRoom))
  }
  if (waiting.length === 0) return values

  const { filters } = scope
  const renderer = createPatientRenderer(thread, turn, { count, isTooLong }, { filters })
  const variables = new Map<string, unknown>([...Object.entries(scope.variables), ...values])
  const callerVariables = ofCaller === undefined ? variables : variablesOf(ofCaller)
  const path: string[] = []
  const settle = async (name: string): Promise<void> => {
    const source = sources.get(name)
    if (values.has(name) || source?.templates === undefined) return
    if (path.includes(name)) {
      const cycle = path.slice(path.indexOf(name)).join(', ')
      throw templateFailed(
        name,
        `Cyclic dependency found in the following variables: ${cycle}. Likely the variable is referencing itself`,
      )
    }
    path.push(name)
    for (const referred of source.templates.names) {
      if (sources.has(referred)) await settle(referred)
      else if (!Object.hasOwn(scope.variables, referred)) {
        const message = `Dependency unsatisfied in variable "${referred}"`
        const isTheirs = ourName('template', referred) !== undefined
        throw templateFailed(name, isTheirs ? adviseOnTemplate(message, referred) : `${message}. ${KEEP_AS_TEXT}`)
      }
    }
    path.pop()
    if (!source.isDefault) for (const referred of source.templates.names) await settleView(referred)
    const value = await evaluate(name, source.value, source.isDefault ? variables : callerVariables)
    values.set(name, value)
    variables.set(name, value)
    if (!source.isDefault) callerVariables.set(name, value)
  }
  const evaluate = async (name: string, text: unknown, among: ReadonlyMap<string, unknown>): Promise<unknown> => {
    const rendered = await renderer.render(name, text, among)
    const isPrinted = set.schemas.get(name)?.type === 'string' && rendered !== null && typeof rendered !== 'string'
    const given = isPrinted ? await renderer.print(name, rendered) : rendered
    const problem = conversionProblemOf(given)
    if (problem !== undefined) throw templateFailed(name, `the value holds ${problem}`)
    return converted(set, name, given, textRoom)
  }
  for (const name of waiting) await settle(name)
  return values

  /** What the caller may read of the parameters that have no templates. */
  function variablesOf({ scope: visible, secretLiterals, user }: CallerView): Map<string, unknown> {
    const map = new Map<string, unknown>(Object.entries(visible.variables))
    for (const [name, value] of values) {
      map.set(name, secretLiterals.has(name) ? refusedParameter(name, user) : value)
    }
    return map
  }

  /** A template of the caller reads of a default what it gives with the caller's permissions. */
  async function settleView(name: string): Promise<void> {
    const source = sources.get(name)
    if (callerVariables.has(name) || source?.templates === undefined) return
    for (const referred of source.templates.names) await settleView(referred)
    callerVariables.set(name, await evaluate(name, source.value, callerVariables))
  }
}

const refusedParameter = (name: string, user: string): Namespace =>
  refusedValue(`${name} holds a secret. ${permissionMissing(user, CONFIG_SECRETS).message}`)

function converted(set: ParameterSet, name: string, value: unknown, textRoom: TextRoom): unknown {
  const schema = set.schemas.get(name)
  return schema === undefined ? value : convertParameter(name, value, schema, textRoom)
}
