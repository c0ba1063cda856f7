/** Making what a pack folder holds known to those who own each kind of content. */
import type { Database } from '../../db/index.ts'
import { newId } from '../../core/ids.ts'
import { problemAt } from '../../lib/text/index.ts'
import type { Metrics } from '../../core/metrics.ts'
import type { PackDefinitions, Registration } from '../../core/pack-content.ts'
import type { Actions } from '../actions/index.ts'
import type { Aliases } from '../aliases/index.ts'
import type { Notifications } from '../notifications/index.ts'
import type { Policies } from '../policies/index.ts'
import type { Rules } from '../rules/index.ts'
import type { Sensors } from '../sensors/index.ts'
import type { Triggers } from '../triggers/index.ts'
import { isOfConfig, type Configs } from './configs.ts'
import type { EnvironmentState, VirtualenvBuilder } from './environments.ts'
import { factsOf, type PackFiles } from './files.ts'
import type { ContentKind, PackContent, PackManifest, PackProblem } from './read.ts'
import { asFilesSay, disabledFilesOf, switchesOf, type Switching } from './switches.ts'
import { overriddenKinds, type OverriddenContent, type OverriddenKind, type Overrides } from './overrides.ts'
import type { PackStore, RegistrationFacts } from './store.ts'
import type { PackRecord } from './types.ts'

/** In the order in which they are registered. */
export const registeredKinds = ['triggers', 'sensors', 'actions', 'rules', 'aliases', 'policies', 'configs'] as const

export type RegisteredKind = (typeof registeredKinds)[number]

export interface PackRegistration {
  /** Undefined when the manifest cannot be used, or a folder of the pack cannot be read. */
  ref: string | undefined
  registered: Record<RegisteredKind, number>
  /** Of the registered ones, those that an override has enabled or disabled. */
  overridden: Record<OverriddenKind, number>
  /** Records deleted because their metadata files are gone. */
  removed: Record<RegisteredKind, number>
  problems: PackProblem[]
  /** What is registered all the same. */
  warnings: PackProblem[]
}

/** Remarks that are stored with a pack. */
const MAX_REMARKS = 1_000

export interface ContentOwners {
  database: Pick<Database, 'write'>
  store: PackStore
  configs: Configs
  overrides: Overrides
  triggers: Pick<Triggers, 'registerTypes' | 'typesVersion'>
  actions: Pick<Actions, 'registerActions' | 'usePackFolder'>
  rules: Pick<Rules, 'registerRules'>
  aliases: Pick<Aliases, 'registerAliases'>
  policies: Pick<Policies, 'registerPolicies'>
  sensors: Pick<Sensors, 'check' | 'registerSensors' | 'packChanged'>
  notifications: Pick<Notifications, 'usePack' | 'forgetPack'>
  virtualenvs: Pick<VirtualenvBuilder, 'examine'>
  metrics: Metrics
}

export const allKinds: ReadonlySet<RegisteredKind> = new Set(registeredKinds)

/**
 * Registers everything usable of a pack; doing it again changes only what has changed.
 *
 * @param content `problems` of it are part of the result
 * @param overrideFacts and `files` as they were before the content was read, so that what changes meanwhile is found to be changed
 * @param areOurs see `registerActions`
 * @param switching what is enabled, whatever the files say
 */
export async function registerContent(
  owners: ContentOwners,
  { content, overridden: overriddenFiles }: OverriddenContent,
  overrideFacts: string,
  { files, isCut, fingerprint }: PackFiles,
  {
    kinds = allKinds,
    areOurs = false,
    switching = asFilesSay,
  }: { kinds?: ReadonlySet<RegisteredKind>; areOurs?: boolean; switching?: Switching | undefined } = {},
): Promise<PackRegistration> {
  const { ref, folder } = content
  const configFacts = await factsOf(owners.configs.fileOf(ref))
  const [registered, removed] = [noCounts(), noCounts()]
  const found = new Map<RegisteredKind, PackProblem[]>()
  const take = (
    kind: RegisteredKind,
    registration: Pick<Registration, 'registered' | 'removed'>,
    more: PackProblem[],
  ) => {
    registered[kind] = registration.registered
    removed[kind] = registration.removed
    found.set(kind, more)
  }
  const takeOf = (kind: ContentKind, registration: Registration, kindsOfFiles: readonly ContentKind[] = [kind]): void =>
    take(kind, registration, problemsOf(content, kindsOfFiles, registration))

  const registering = <T>(kind: RegisteredKind, work: Promise<T>): Promise<T> => timed(owners.metrics, kind, work)

  const remarked = new Set(owners.store.remarksOf(ref).map(({ file }) => file))
  owners.actions.usePackFolder(ref, folder)
  const disabledBefore = owners.store.disabledFilesOf(ref)
  const of = (kind: ContentKind): PackDefinitions => ({
    ...definitionsOf(content, kind),
    enabledOf: switchesOf(content, kind, switching, disabledBefore),
  })
  const ofSensors = of('sensors')
  const sensors = owners.sensors.check(ofSensors)
  const types = typesOf(content, sensors.triggerTypes)
  let triggers =
    kinds.has('triggers') || kinds.has('sensors')
      ? await registering('triggers', owners.triggers.registerTypes(types))
      : undefined
  if (kinds.has('sensors'))
    takeOf('sensors', await registering('sensors', owners.sensors.registerSensors(ofSensors, sensors)))
  if (kinds.has('actions')) {
    takeOf(
      'actions',
      await registering('actions', owners.actions.registerActions({ ...of('actions'), remarked }, areOurs)),
    )
  }
  if (kinds.has('rules')) {
    const rules = await registering('rules', owners.rules.registerRules(of('rules')))
    takeOf('rules', rules)
    // A trigger type stays while rules use it, and these have gone only now.
    if (rules.removed > 0 && triggers !== undefined && triggers.problems.length > 0) {
      const second = await owners.triggers.registerTypes(types)
      triggers = { ...second, removed: triggers.removed + second.removed }
    }
  }
  if (triggers !== undefined) takeOf('triggers', triggers, ['triggers', 'sensors'])
  if (kinds.has('aliases'))
    takeOf('aliases', await registering('aliases', owners.aliases.registerAliases(of('aliases'))))
  if (kinds.has('policies')) {
    takeOf('policies', await registering('policies', owners.policies.registerPolicies(of('policies'))))
  }
  if (kinds.has('configs')) {
    const configs = await registering('configs', owners.configs.register(content))
    take('configs', configs, configs.problems)
  }
  owners.sensors.packChanged(ref)
  const ofDestinations = await owners.notifications.usePack(ref, folder)
  const remarks = [...content.problems, ...registeredKinds.flatMap((kind) => found.get(kind) ?? []), ...ofDestinations]
  const { problems, warnings } = separate(remarks)
  if (kinds.has('actions')) warnings.push(...lacking(await owners.virtualenvs.examine(ref, folder)))
  if (isCut) problems.push({ file: '.', message: 'the pack has too many files, or too deep folders, to list them all' })
  const now = joinFingerprint(fingerprint, configFacts, overrideFacts)
  const isWhole = registeredKinds.every((kind) => kinds.has(kind))
  // What was not looked at now is as registered before only if nothing has changed since.
  const before = owners.store.fingerprintOf(ref) ?? ''
  const kept = before.startsWith(now) ? before : ''
  const ofConfig = found.get('configs')
  const others = isWhole ? remarks : owners.store.remarksOf(ref)
  // Those of the configuration first: they count also where a pack has too many.
  const stored = ofConfig === undefined ? others : [...ofConfig, ...others.filter((remark) => !isOfConfig(remark))]
  await saveRecord(owners, content, files, {
    fingerprint: isWhole ? now : kept,
    remarks: stored.slice(0, MAX_REMARKS),
    disabledFiles: disabledFilesOf(content, kinds, disabledBefore),
  })
  const broken = new Set(problems.map(({ file }) => file))
  const overridden = noOverridden()
  for (const kind of overriddenKinds) {
    if (kinds.has(kind)) overridden[kind] = [...overriddenFiles[kind]].filter((path) => !broken.has(path)).length
  }
  return { ref, registered, overridden, removed, problems, warnings }
}

/** What actions of the pack need, and what is not there. */
function lacking(state: EnvironmentState | undefined): PackProblem[] {
  if (state === undefined) return []
  const { missing, problem } = state
  const names = missing.length === 0 ? '' : `not installed: ${missing.join(', ')}`
  if (problem !== undefined) {
    // pip says it in several lines.
    const why = problem.replace(/\s+/g, ' ')
    return [{ file: 'requirements.txt', message: names === '' ? why : `${names}. ${why}` }]
  }
  return names === ''
    ? []
    : [{ file: 'requirements.txt', message: `${names}; svc installs this before the next action of the pack runs` }]
}

/** Warnings apart from problems, in the same order. */
export function separate(remarks: readonly PackProblem[]): { problems: PackProblem[]; warnings: PackProblem[] } {
  const problems = remarks.filter(({ isWarning }) => isWarning !== true)
  const warnings = remarks
    .filter(({ isWarning }) => isWarning === true)
    .map(({ isWarning: _isWarning, ...warning }) => warning)
  return { problems, warnings }
}

/** Measures how long registering takes that has just begun. */
export async function timed<T>(metrics: Metrics, kind: RegisteredKind | 'runners', work: Promise<T>): Promise<T> {
  const begun = performance.now()
  try {
    return await work
  } finally {
    metrics.time('content.registered', { kind }, performance.now() - begun)
  }
}

/** Takes away all that registering a pack has brought. @returns what could not be taken away, and why */
export async function unregisterContent(owners: ContentOwners, ref: string): Promise<PackProblem[]> {
  const nothing: PackDefinitions = { pack: ref, definitions: [], metadataFiles: new Set() }
  const registrations = [
    await owners.rules.registerRules(nothing),
    await owners.aliases.registerAliases(nothing),
    await owners.policies.registerPolicies(nothing),
    await owners.actions.registerActions(nothing),
    await owners.sensors.registerSensors(nothing),
    await owners.triggers.registerTypes(nothing),
  ]
  owners.notifications.forgetPack(ref)
  await owners.configs.unregister(ref)
  await owners.database.write({ steps: [owners.store.deletePack(ref)], facts: [] })
  return registrations.flatMap((registration) =>
    registration.problems.map(({ metadataFile, path, message }) =>
      problemAt(metadataFile, path, () => undefined, message),
    ),
  )
}

export function noCounts(): Record<RegisteredKind, number> {
  return { triggers: 0, sensors: 0, actions: 0, rules: 0, aliases: 0, policies: 0, configs: 0 }
}

export function noOverridden(): Record<OverriddenKind, number> {
  return { actions: 0, sensors: 0, rules: 0, aliases: 0 }
}

/** Files of triggers, and what sensors say of theirs. */
function typesOf(content: PackContent, ofSensors: PackDefinitions['definitions']): PackDefinitions {
  const { pack, definitions, metadataFiles } = definitionsOf(content, 'triggers')
  return {
    pack,
    definitions: [...definitions, ...ofSensors],
    metadataFiles: new Set([...metadataFiles, ...content.sensors.paths]),
  }
}

function definitionsOf(content: PackContent, kind: ContentKind): PackDefinitions {
  const { files, paths } = content[kind]
  return {
    pack: content.ref,
    folder: content.folder,
    definitions: files.map(({ path, document }) => ({ metadataFile: path, definition: document.value })),
    metadataFiles: paths,
  }
}

function problemsOf(
  content: PackContent,
  kinds: readonly ContentKind[],
  { problems }: Pick<Registration, 'problems'>,
): PackProblem[] {
  const files = kinds.flatMap((kind) => content[kind].files)
  const documents = new Map(files.map(({ path, document }) => [path, document]))
  return problems.map(({ metadataFile, path, message, isWarning }) => ({
    ...problemAt(metadataFile, path, (keys) => documents.get(metadataFile)?.lineOf(keys), message),
    ...(isWarning === undefined ? {} : { isWarning }),
  }))
}

function toRecord({ ref, folder, manifest }: PackContent, files: string[], id: string): PackRecord {
  const { email, svc_version: svcVersion, ...others } = manifest
  return {
    ...others,
    id,
    uid: `pack:${ref}`,
    ref,
    email: textOf(email),
    keywords: listOf(manifest, 'keywords'),
    contributors: listOf(manifest, 'contributors'),
    dependencies: listOf(manifest, 'dependencies'),
    python_versions: listOf(manifest, 'python_versions'),
    svc_version: textOf(svcVersion),
    system: (manifest['system'] ?? {}) as Record<string, unknown>, // has passed its schema
    files,
    path: folder,
  }
}

const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null)

function listOf(manifest: PackManifest, key: string): string[] {
  const value = manifest[key]
  return Array.isArray(value) ? value.map(String) : []
}

async function saveRecord(
  { database, store }: Pick<ContentOwners, 'database' | 'store'>,
  content: PackContent,
  files: string[],
  facts: RegistrationFacts,
): Promise<void> {
  const before = store.findPackByRef(content.ref)
  const record = toRecord(content, files, before?.id ?? newId())
  const step = before === undefined ? store.insertPack(record, facts) : store.updatePack(record, facts)
  await database.write({ steps: [step], facts: [] })
}

const joinFingerprint = (...facts: readonly string[]): string => facts.join(' ')

/** @param types which trigger types there were */
export const withTypes = (fingerprint: string, types: string): string => `${fingerprint}${TYPES_MARK}${types}`

/** Begins the part of a fingerprint that is about trigger types. */
export const TYPES_MARK = ' !'

/**
 * What a pack that is unchanged has been registered with.
 *
 * @param hasProblems what is missing may have come since: a rule needs its trigger type
 */
export async function fingerprintOf(
  { configs, overrides, triggers }: Pick<ContentOwners, 'configs' | 'overrides' | 'triggers'>,
  ref: string,
  files: PackFiles,
  hasProblems: boolean,
): Promise<string> {
  const own = joinFingerprint(files.fingerprint, await factsOf(configs.fileOf(ref)), await overrides.facts(ref))
  return hasProblems ? withTypes(own, triggers.typesVersion()) : own
}
