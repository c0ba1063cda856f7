/** Actions and runner types: looking them up, resolving parameters, registering definitions. */
import { createHash } from 'node:crypto'
import { join, resolve } from 'node:path'
import { problemOfContainedFile } from '../../lib/files/index.ts'
import { merge, type Database, type Step, type Unit } from '../../db/index.ts'
import { contentNotFound, namedNotFound } from '../../core/errors.ts'
import { isId, newId } from '../../core/ids.ts'
import { Lru } from '../../lib/cache/index.ts'
import type { RunnerTypeDefinition } from '../../runners/index.ts'
import {
  asEnabled,
  checkPackDefinitions,
  isGone,
  type PackDefinitions,
  type Registration,
  type RegistrationProblem,
} from '../../core/pack-content.ts'
import { isObject, MASK } from '../../lib/schema/index.ts'
import type { TemplateScope } from '../../lib/template/index.ts'
import { checkActionDefinition, fillActionDefinition, isStored } from './definition.ts'
import { createParameterSet, mergeParameters, type ParameterSchemas, type ParameterSet } from './parameters.ts'
import {
  checkParameters,
  effectiveParameters,
  renderParameters,
  type EffectiveParameters,
  type RenderOptions,
} from './resolve.ts'
import { compileSecrets, maskSecrets, secretsIn, type ReplaceSecrets } from '../../lib/secrets/index.ts'
import type { KeyedLock } from '../../lib/concurrency/index.ts'
import type { TemplateThread, Turn } from '../../core/rendering/index.ts'
import type { ActionStore } from './store.ts'
import { actionFileSchema, type ActionDefinition, type ActionRecord, type RunnerTypeRecord } from './types.ts'
import { writeJson } from '../../lib/json/index.ts'

const MAX_CACHED = 2_000

export interface ActionService {
  /** By id when it looks like one, else by ref. The record is shared: it must not be changed. */
  find(refOrId: string): ActionRecord | undefined
  /** The same. @throws CONTENT_NOT_FOUND */
  get(refOrId: string): ActionRecord
  /** By id when it looks like one, else by name. The record is shared: it must not be changed. */
  findRunnerType(nameOrId: string): RunnerTypeRecord | undefined
  /** The parameters of the runner with the action's overrides, then the action's own. */
  parametersOf(action: ActionRecord): ParameterSchemas
  /** Of all actions of a pack. */
  refsOfPack(pack: string): string[]

  /**
   * Renders templates and converts to the declared types; the result is what an execution keeps.
   *
   * @param scope see `renderParameters`
   * @param turn on whose behalf
   * @throws TEMPLATE_FAILED, PARAMETERS_INVALID, QUEUE_FULL, SHUTTING_DOWN
   */
  render(
    action: ActionRecord,
    runner: RunnerTypeRecord,
    supplied: Record<string, unknown>,
    scope: TemplateScope,
    turn: Turn,
    options?: RenderOptions,
  ): Promise<Record<string, unknown>>
  /** Compiles what `check` needs, between other work. */
  prepareCheck(action: ActionRecord, runner: RunnerTypeRecord): Promise<void>
  /** @param rendered what `render` gave @throws PARAMETERS_INVALID */
  check(
    action: ActionRecord,
    runner: RunnerTypeRecord,
    rendered: Record<string, unknown>,
    supplied: Record<string, unknown>,
  ): void
  /** Values for the runner, defaults filled in. @param kept what `render` gave @throws TEMPLATE_FAILED, PARAMETERS_INVALID */
  effective(
    action: ActionRecord,
    runner: RunnerTypeRecord,
    kept: Record<string, unknown>,
    scope: TemplateScope,
    turn: Turn,
  ): Promise<EffectiveParameters>
  /** The parameters themselves when nothing in them is secret. */
  mask(action: ActionRecord, runner: RunnerTypeRecord, parameters: Record<string, unknown>): Record<string, unknown>
  /** The values in the parameters that their schemas mark as secret; what is null is not there. */
  secretsIn(action: ActionRecord, runner: RunnerTypeRecord, parameters: Record<string, unknown>): unknown[]
  /**
   * A copy of a result with masks where the `output_schema` of the action marks secrets (contract 02, 2.5); the result
   * itself without secrets.
   */
  maskResult(
    action: ActionRecord,
    runner: RunnerTypeRecord,
    result: Readonly<Record<string, unknown>>,
  ): Readonly<Record<string, unknown>>
  /** Absolute path; empty when the action has none. @throws Error when the folder of its pack is not known */
  entryPointOf(action: ActionRecord): string

  /** Tells where the files of a pack are. */
  usePackFolder(pack: string, folder: string): void
  folderOf(pack: string): string | undefined
  /** Ids stay, and so does what an administrator said about `enabled`. They come with the program: its tests check them. */
  registerRunnerTypes(definitions: readonly RunnerTypeDefinition[]): Promise<void>
  /**
   * Ids stay. What is wrong with some definitions does not keep the others out.
   *
   * @param areOurs they come with the program, and its tests have checked them: at the first start that would take long
   */
  registerActions(content: PackDefinitions, areOurs?: boolean): Promise<Registration>
  /** Writes what changes actions, and forgets what is remembered of them. @throws as `Database.write` */
  commit(unit: Unit): Promise<void>
  /** @throws NAMED_NOT_FOUND */
  setRunnerTypeEnabled(nameOrId: string, enabled: boolean): Promise<RunnerTypeRecord>
}

export function createActionService(deps: {
  database: Database
  store: ActionStore
  /** By pack: requests that change its actions take turns with this. */
  withLock: KeyedLock
  templateThread: TemplateThread
}): ActionService {
  const { database, store, withLock, templateThread: thread } = deps
  const actionsByRef = new Lru<string, ActionRecord>(MAX_CACHED)
  const runnerTypesByName = new Lru<string, RunnerTypeRecord>(MAX_CACHED)
  const packFolders = new Map<string, string>()
  /** Runner types that were the same when the program ended: what was checked against them still holds. */
  const unchangedRunners = new Set<string>()
  // Keyed by the records themselves: an execution keeps the records it was made with.
  const parameterSets = new WeakMap<ActionRecord, WeakMap<RunnerTypeRecord, ParameterSet>>()
  const outputSecrets = new WeakMap<ActionRecord, { value: ReplaceSecrets | undefined }>()

  function find(refOrId: string): ActionRecord | undefined {
    const byId = isId(refOrId) ? store.find(refOrId) : undefined
    return byId ?? remembered(actionsByRef, refOrId, (ref) => store.findByRef(ref))
  }

  function get(refOrId: string): ActionRecord {
    const action = find(refOrId)
    if (action === undefined) throw contentNotFound(refOrId)
    return action
  }

  function findRunnerType(nameOrId: string): RunnerTypeRecord | undefined {
    const byId = isId(nameOrId) ? store.findRunnerType(nameOrId) : undefined
    return byId ?? remembered(runnerTypesByName, nameOrId, (name) => store.findRunnerTypeByName(name))
  }

  function parameterSetOf(action: ActionRecord, runner: RunnerTypeRecord): ParameterSet {
    let ofAction = parameterSets.get(action)
    if (ofAction === undefined) {
      ofAction = new WeakMap()
      parameterSets.set(action, ofAction)
    }
    let set = ofAction.get(runner)
    if (set === undefined) {
      set = createParameterSet(runner.runner_parameters, action.parameters)
      ofAction.set(runner, set)
    }
    return set
  }

  function outputSecretsOf(action: ActionRecord): ReplaceSecrets | undefined {
    let known = outputSecrets.get(action)
    if (known === undefined) {
      const { output_schema: schema } = action
      // The older form is a map of names to schemas.
      const isWhole = typeof schema['type'] === 'string' || Array.isArray(schema['type'])
      known = { value: compileSecrets(isWhole ? schema : { properties: schema }) }
      outputSecrets.set(action, known)
    }
    return known.value
  }

  async function apply(unit: Unit): Promise<void> {
    if (unit.steps.length === 0) return
    await database.write(merge(unit, { steps: [], facts: [{ name: 'content.changed', payload: { kind: 'action' } }] }))
    actionsByRef.clear()
    runnerTypesByName.clear()
  }

  async function register(content: PackDefinitions, areOurs: boolean): Promise<Registration> {
    const runnerOf = (name: string): ParameterSchemas | undefined => findRunnerType(name)?.runner_parameters
    const existing = new Map(store.ofPack(content.pack).map((action) => [action.ref, action]))
    const isKnown = (metadataFile: string, definition: unknown): boolean =>
      areOurs ||
      (content.remarked?.has(metadataFile) !== true &&
        [...existing.values()].some(
          (action) =>
            action.metadata_file === metadataFile &&
            unchangedRunners.has(action.runner_type) &&
            isStored(definition, action),
        ))
    const checked = await checkPackActions(content, runnerOf, isKnown)

    const steps: (Step | undefined)[] = []
    for (const definition of checked.definitions) {
      const ref = `${definition.pack}.${definition.name}`
      const before = existing.get(ref)
      const record = actionRecordOf(asEnabled(content, definition, before), before?.id ?? newId())
      if (before === undefined) steps.push(store.insert(record))
      else if (!isEqual(before, record)) steps.push(store.update(record))
    }
    const gone: ActionRecord[] = []
    for (const action of existing.values()) {
      if (isGone(action, content, checked.definitions) && !(await hasCome(content, action))) gone.push(action)
    }
    await apply(
      merge({ steps: present(steps), facts: [] }, { steps: gone.map(({ id }) => store.delete(id)), facts: [] }),
    )
    return { registered: checked.definitions.length, removed: gone.length, problems: checked.problems }
  }

  return {
    find,
    get,
    findRunnerType,
    parametersOf: (action) =>
      mergeParameters(findRunnerType(action.runner_type)?.runner_parameters ?? {}, action.parameters),
    refsOfPack: (pack) => store.ofPack(pack).map(({ ref }) => ref),

    render: (action, runner, supplied, scope, turn, options) =>
      renderParameters(parameterSetOf(action, runner), supplied, scope, { thread, turn }, options),
    prepareCheck: (action, runner) => parameterSetOf(action, runner).prepare(),
    check: (action, runner, rendered, supplied) => checkParameters(parameterSetOf(action, runner), rendered, supplied),
    effective: (action, runner, kept, scope, turn) =>
      effectiveParameters(parameterSetOf(action, runner), kept, scope, { thread, turn }),
    mask: (action, runner, parameters) => maskSecrets(parameters, parameterSetOf(action, runner).secrets),
    secretsIn: (action, runner, parameters) => secretsIn(parameters, parameterSetOf(action, runner).secrets),
    maskResult(action, { output_key: key }, result) {
      if (key === undefined || !Object.hasOwn(result, key)) return result
      const secrets = outputSecretsOf(action)
      return secrets === undefined ? result : { ...result, [key]: secrets(result[key], () => MASK) }
    },
    entryPointOf(action) {
      if (action.entry_point === '') return ''
      const folder = packFolders.get(action.pack)
      if (folder === undefined) throw new Error(`The pack "${action.pack}" has no folder on this server.`)
      return join(folder, 'actions', action.entry_point)
    },

    usePackFolder: (pack, folder) => void packFolders.set(pack, resolve(folder)),
    folderOf: (pack) => packFolders.get(pack),

    async registerRunnerTypes(definitions) {
      const steps = definitions.map((definition) => {
        const existing = store.findRunnerTypeByName(definition.name)
        const record: RunnerTypeRecord = {
          id: existing?.id ?? newId(),
          uid: `runner_type:${definition.name}`,
          ...definition,
          enabled: existing?.enabled ?? definition.enabled,
        }
        if (existing !== undefined && isEqual(existing, record)) {
          unchangedRunners.add(definition.name)
          return undefined
        }
        return existing === undefined ? store.insertRunnerType(record) : store.updateRunnerType(record)
      })
      await apply({ steps: present(steps), facts: [] })
    },

    registerActions: (content, areOurs = false) => withLock(content.pack, () => register(content, areOurs)),

    commit: apply,

    async setRunnerTypeEnabled(nameOrId, enabled) {
      const runnerType = findRunnerType(nameOrId)
      if (runnerType === undefined) throw namedNotFound(nameOrId)
      const changed = { ...runnerType, enabled }
      await apply({ steps: [store.updateRunnerType(changed)], facts: [] })
      return changed
    },
  }
}

/** Whether its file was not there when the others were read, and is now: requests write files too. */
async function hasCome(
  { folder, metadataFiles }: PackDefinitions,
  { metadata_file: file }: ActionRecord,
): Promise<boolean> {
  if (folder === undefined || file === undefined || metadataFiles.has(file)) return false
  return (await problemOfContainedFile(folder, file)) === undefined
}

function remembered<R>(cache: Lru<string, R>, key: string, find: (key: string) => R | undefined): R | undefined {
  const known = cache.get(key)
  if (known !== undefined) return known
  const found = find(key)
  if (found !== undefined) cache.set(key, found)
  return found
}

function checkPackActions(
  content: PackDefinitions,
  runnerOf: (name: string) => ParameterSchemas | undefined,
  isKnown: (metadataFile: string, definition: unknown) => boolean,
): Promise<{ definitions: ActionDefinition[]; problems: RegistrationProblem[] }> {
  return checkPackDefinitions(content, 'Action', (given, metadataFile) => {
    // The metadata file is the one that is read.
    const named = isObject(given)
      ? { ...given, pack: given['pack'] ?? content.pack, metadata_file: metadataFile }
      : given
    return isKnown(metadataFile, named)
      ? { definition: fillActionDefinition(named as Partial<ActionDefinition>) } // checked by tests, or equal to a record that was checked
      : checkActionDefinition(named, runnerOf, actionFileSchema)
  })
}

export function actionRecordOf(definition: ActionDefinition, id: string): ActionRecord {
  const { pack, name } = definition
  return { id, uid: `action:${pack}:${name}`, ref: `${pack}.${name}`, ...definition }
}

/** Differs after each change (RFC 9110, 8.8.3). */
export function entityTagOf(action: ActionRecord): string {
  return `"${createHash('sha256').update(writeJson(action)).digest('base64url').slice(0, 22)}"`
}

/** Equal as stored: the order of attributes counts, because it is shown. */
function isEqual(a: unknown, b: unknown): boolean {
  return writeJson(a) === writeJson(b)
}

function present(steps: readonly (Step | undefined)[]): Step[] {
  return steps.filter((step) => step !== undefined)
}
