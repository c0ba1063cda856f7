/** Plays `metadata.jsonl` of a folder with golden data: each row is a pack, which is registered and read back. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { loadEncryption } from '../../src/core/encryption.ts'
import { noMetrics } from '../../src/core/metrics.ts'
import { allRights } from '../../src/http/authenticate.ts'
import { writeJson } from '../../src/lib/json/index.ts'
import { createLog } from '../../src/lib/log/log.ts'
import { isObject } from '../../src/lib/schema/index.ts'
import { createActionStore } from '../../src/modules/actions/store.ts'
import { createDatastore } from '../../src/modules/datastore/index.ts'
import { createDatastoreService } from '../../src/modules/datastore/service.ts'
import { createKeyStore } from '../../src/modules/datastore/store.ts'
import { createConfigs, type Configs } from '../../src/modules/packs/configs.ts'
import { createSensorRecords } from '../helpers/sensors.ts'
import { createPacks, type PackRegistration, type Packs } from '../../src/modules/packs/index.ts'
import { createTemplateThread } from '../../src/core/rendering/index.ts'
import { createAliases } from '../../src/modules/aliases/index.ts'
import { createAliasStore } from '../../src/modules/aliases/store.ts'
import { createPackStore } from '../../src/modules/packs/store.ts'
import { createPolicies } from '../../src/modules/policies/index.ts'
import { createPolicyStore } from '../../src/modules/policies/store.ts'
import { createRuleStore } from '../../src/modules/rules/store.ts'
import { createDefinitionStore } from '../../src/modules/triggers/definitions/store.ts'
import { createRunners, workflowRunners } from '../../src/runners/index.ts'
import { createLauncher } from '../../src/runners/process/create-launcher.ts'
import { makeFolder } from '../helpers/folders.ts'
import { startRules } from '../helpers/rules.ts'
import { TextSink } from '../helpers/text-sink.ts'
import type { Difference, Tally } from '../golden-workflows/tally.ts'
import { plain, readRows, spell } from './values.ts'

type FileText = string | { readonly $hex: string }

interface Row {
  readonly id: string
  readonly subject: string
  readonly note?: string
  readonly pack: { readonly files: Readonly<Record<string, FileText>> }
  readonly expect: {
    readonly files: Readonly<Record<string, { readonly accepted: boolean; readonly message?: string }>>
    readonly records?: Readonly<Record<string, readonly Record<string, unknown>[]>>
    readonly get_config?: { readonly value: unknown } | { readonly error: string; readonly message: string }
  }
}

/** Records that are compared, and their attributes. Those that svc itself decides are left out, as are ids. */
const compared: Readonly<Record<string, readonly string[]>> = Object.fromEntries(
  Object.entries({
    packs:
      'ref name description version author email keywords python_versions contributors dependencies system svc_version',
    actions:
      'name pack ref uid metadata_file description enabled runner_type entry_point parameters output_schema notify tags',
    triggertypes: 'name pack ref uid metadata_file description payload_schema parameters_schema tags',
    rules: 'name pack ref uid metadata_file description enabled type trigger criteria action tags',
    triggers: 'type parameters',
    aliases:
      'name pack ref uid metadata_file description enabled action_ref formats ack result extra immutable_parameters',
    policies: 'name pack ref uid metadata_file description enabled resource_ref policy_type parameters',
    config_schemas: 'pack attributes',
    configs: 'pack values',
  }).map(([kind, names]) => [kind, names.split(' ')]),
)

/** Nothing said, in its several forms. */
const isNothing = (value: unknown): boolean =>
  value === null || value === undefined || value === '' || writeJson(value) === '[]' || writeJson(value) === '{}'

/** A record in one spelling: only what it says. A trigger made up for a rule has another name each time. */
function spellRecord(kind: string, given: Readonly<Record<string, unknown>>): string {
  const kept = (compared[kind] ?? []).map((name): [string, unknown] => [name, plain(given[name])])
  const said = kept.map(([name, value]): [string, unknown] => {
    if (!isObject(value) || !['trigger', 'action', 'type'].includes(name)) return [name, value]
    return [name, Object.fromEntries(Object.entries(value).filter(([key, inner]) => key !== 'ref' || !isMadeUp(inner)))]
  })
  return spell(Object.fromEntries(said.filter(([, value]) => !isNothing(value)).map(([name, value]) => [name, value])))
}

const isMadeUp = (ref: unknown): boolean =>
  typeof ref === 'string' && /^core\.(UUID|[0-9a-f]{8}-[0-9a-f-]{27})$/.test(ref)

const spellRecords = (kind: string, records: readonly object[]): string[] =>
  records.map((record) => spellRecord(kind, { ...record })).toSorted()

/** What is registered of a pack, as the API gives it. */
type RecordsOf = (pack: string) => Readonly<Record<string, readonly object[]>>

interface World {
  readonly packs: Packs
  readonly folder: string
  readonly configsFolder: string
  readonly recordsOf: RecordsOf
  /** Values as templates give them; `packs.resolve` refuses them where the file is not used. */
  readonly configs: Pick<Configs, 'get' | 'resolve'>
  stop(): Promise<void>
}

async function startWorld(): Promise<World> {
  const folder = makeFolder()
  const log = createLog({ level: 'CRITICAL', format: 'text', stream: new TextSink() })
  const { launcher } = await createLauncher('child-process')
  const runners = await createRunners({ launcher, maxResultBytes: 1_000, systemUser: 'svc-no-such-account' })
  const encryption = await loadEncryption({ enabled: true, keyPath: '', ownKeyPath: join(folder.path, 'keys.json') })
  const world = await startRules()
  const { database } = world
  const keys = { database, store: createKeyStore(database), encryption, log, planEvent: () => undefined }
  const datastore = createDatastore({
    ...keys,
    rightsOf: () => allRights,
    settings: { accessControl: false, maxPageSize: 100 },
  })
  const service = createDatastoreService(keys)
  const put = (name: string, value: string, { user = '', secret = false } = {}): Promise<unknown> =>
    service.put(
      { scope: user === '' ? 'svckv.system' : 'svckv.user', user, name },
      { value, secret, isPreEncrypted: false },
      { principal: { user: 'u', isAdmin: true, method: 'token' }, requestId: '', remoteAddress: '' },
    )
  await put('plain', 'plain text')
  await put('num', '42')
  await put('obj', '{"a": [1, 2]}')
  await put('flag', 'true')
  await put('hidden', 's3cret', { secret: true })
  await put('mine', 'of the user', { user: 'u' })
  const configsFolder = join(folder.path, 'configs')
  const basePath = join(folder.path, 'packs')
  mkdirSync(configsFolder)
  mkdirSync(basePath)
  const packs = createPacks({
    notifications: { usePack: () => Promise.resolve([]), forgetPack: () => undefined },
    metrics: noMetrics,
    database,
    triggers: world.triggers,
    actions: world.actions,
    rules: world.rules,
    aliases: createAliases({
      database,
      bus: world.bus,
      log,
      actions: world.actions,
      executions: world.executions,
      templateThread: createTemplateThread(),
      settings: { systemUser: 'svc', maxPageSize: 100 },
    }),
    policies: createPolicies({
      database,
      bus: world.bus,
      log,
      actions: world.actions,
      executions: world.executions,
      settings: { systemUser: 'svc', maxPageSize: 100 },
    }),
    sensors: createSensorRecords(database, log),
    encryption,
    log,
    templates: (reader) => datastore.templates(reader),
    startExecution: () => Promise.reject(new Error('nothing is installed here')),
    virtualenvs: {
      ensure: () => Promise.reject(new Error('nothing is installed here')),
      recreate: () => Promise.reject(new Error('nothing is installed here')),
      remove: () => Promise.resolve(),
      examine: () => Promise.resolve(undefined),
    },
    runnerTypes: [...runners.list.map(({ definition }) => definition), ...workflowRunners],
    get: () => Promise.reject(new Error('no index is configured')),
    settings: {
      basePaths: [basePath],
      configsPath: configsFolder,
      overridesPath: join(folder.path, 'overrides'),
      cachePath: join(folder.path, 'cache'),
      versionsPath: join(folder.path, 'versions'),
      indexUrls: [],
      watch: false,
      maxPageSize: 100,
      maskSecrets: false,
    },
  })
  await packs.start?.()

  const actionStore = createActionStore(database)
  const policyStore = createPolicyStore(database)
  const ruleStore = createRuleStore(database)
  const packStore = createPackStore(database)
  const aliasStore = createAliasStore(database)
  const configs = createConfigs({
    database,
    store: packStore,
    encryption,
    folder: configsFolder,
    templates: (reader) => datastore.templates(reader),
  })
  const definitionStore = createDefinitionStore(database)
  return {
    packs,
    folder: basePath,
    configsFolder,
    configs,
    recordsOf(pack) {
      const rules = ruleStore.ofPack(pack).map((rule) => {
        const { id, ...trigger } = rule.trigger
        return { ...rule, trigger: { ...trigger, parameters: world.triggers.find(id)?.parameters } }
      })
      const found = packs.find(pack)
      const schema = packStore.findConfigSchema(pack)
      return {
        packs: found === undefined ? [] : [found],
        actions: actionStore.ofPack(pack),
        triggertypes: definitionStore.types().filter((type) => type.pack === pack),
        rules,
        triggers: rules.map(({ trigger }) => trigger),
        aliases: aliasStore.ofPack(pack),
        policies: policyStore.ofPack(pack),
        config_schemas: schema === undefined ? [] : [schema],
        configs: packStore.findConfig(pack) === undefined ? [] : [{ ...configs.get(pack, true) }],
      }
    },
    async stop() {
      await packs.stop?.()
      await world.stop()
      await runners.stop()
      await launcher.stop()
      folder.remove()
    },
  }
}

function writePack({ folder, configsFolder }: World, { id, pack }: Row): void {
  for (const [path, text] of Object.entries(pack.files)) {
    const isConfig = path.startsWith('configs/')
    const file = isConfig ? join(configsFolder, path.slice('configs/'.length)) : join(folder, id, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, typeof text === 'string' ? text : Buffer.from(text.$hex, 'hex'))
  }
}

/** What svc says against each file: a pack that is refused is not read further. */
function problemsIn({ problems }: PackRegistration): ReadonlyMap<string, string> {
  return new Map(problems.filter(({ isWarning }) => isWarning !== true).map(({ file, message }) => [file, message]))
}

interface Finding {
  readonly about: string
  readonly expected: string
  readonly actual: string
}

function compareRow(world: World, row: Row, registration: PackRegistration): Finding[] {
  const findings: Finding[] = []
  const compare = (about: string, expected: string, actual: string): void => {
    if (expected !== actual) findings.push({ about, expected, actual })
  }
  const { files, records, get_config: config } = row.expect
  const refused = problemsIn(registration)
  const isPackRefused = files['pack.yaml']?.accepted === false
  for (const [file, { accepted, message = '' }] of Object.entries(files)) {
    // An installation stops there.
    if (isPackRefused && file !== 'pack.yaml') continue
    const problem = file === 'pack.yaml' && registration.ref === undefined ? 'there is no pack' : refused.get(file)
    // What svc reads beyond that shows in the records.
    if (!accepted && message === 'not looked at') continue
    if (accepted !== (problem === undefined)) {
      const expected = accepted ? 'accepted' : `refused: ${message}`
      findings.push({ about: file, expected, actual: problem === undefined ? 'accepted' : `refused: ${problem}` })
    }
  }
  if (isPackRefused) return findings
  const ours = world.recordsOf(registration.ref ?? row.id)
  const isVerdictSame = findings.length === 0
  const isRuleRefused = Object.entries(files).some(([file, { accepted }]) => file.startsWith('rules/') && !accepted)
  for (const [kind, expected] of Object.entries({ actions: [], ...records })) {
    if (compared[kind] === undefined || !isVerdictSame) continue
    // The incumbent leaves the trigger of a rule that it refuses.
    if (isRuleRefused && kind === 'triggers') continue
    // Those of the pack alone; rows name triggers of core as well.
    compare(kind, spellRecords(kind, expected).join('; '), spellRecords(kind, ours[kind] ?? []).join('; '))
  }
  if (config !== undefined && isVerdictSame) {
    const actual = resolved(world, registration.ref ?? row.id)
    if ('error' in config) {
      if ('value' in actual) compare('get_config', `fails: ${config.message}`, spell(actual.value))
    } else {
      const value = 'value' in actual ? withoutCipherText(spell(actual.value)) : `fails: ${actual.why}`
      compare('get_config', spell(plain(config.value)), value)
    }
  }
  return findings
}

/** It differs each time. */
const withoutCipherText = (text: string): string => text.replace(/"[0-9A-F]{66,}"/g, '"CIPHERTEXT"')

function resolved({ configs }: World, pack: string): { value: unknown } | { why: string } {
  try {
    return { value: configs.resolve(pack, { user: 'u' }).values }
  } catch (error) {
    return { why: error instanceof Error ? error.message : String(error) }
  }
}

/** @param folder holds `metadata.jsonl` */
export async function playMetadata(folder: string): Promise<Tally> {
  const rows = readRows<Row>(folder, 'metadata')
  const differences: Difference[] = []
  const world = await startWorld()
  try {
    for (const row of rows) {
      writePack(world, row)
      const registration = await world.packs.register(join(world.folder, row.id))
      for (const { about, expected, actual } of compareRow(world, row, registration).slice(0, 1)) {
        const note = row.note === undefined ? '' : ` (${row.note})`
        differences.push({ id: row.id, input: `${about}${note}`, expected, actual })
      }
    }
  } finally {
    await world.stop()
  }
  return { name: 'metadata', agree: rows.length - differences.length, differences }
}
