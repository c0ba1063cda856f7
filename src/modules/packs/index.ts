/** Packs: folders of content in the layout of contract 02, 2.8, their configurations, and the `core` pack that comes with the program. */
import { join } from 'node:path'
import { locatePart, pathOnDisk } from '../../core/bundle.ts'
import { defaultPack } from '../../core/pack-content.ts'
import type { Database } from '../../db/index.ts'
import type { Encryption } from '../../core/encryption.ts'
import type { Log } from '../../lib/log/index.ts'
import { describeProblem } from '../../lib/text/index.ts'
import type { Metrics } from '../../core/metrics.ts'
import type { Module } from '../../core/module.ts'
import type { HttpGet, PackManager, RunnerTypeDefinition } from '../../runners/index.ts'
import { describeFileError, makeFolder, watchFolders, type FolderWatch } from '../../lib/files/index.ts'
import type { TemplateScope } from '../../lib/template/index.ts'
import { createKeyedLock } from '../../lib/concurrency/index.ts'
import { version } from '../../core/version.ts'
import type { Actions } from '../actions/index.ts'
import type { Aliases } from '../aliases/index.ts'
import type { Notifications } from '../notifications/index.ts'
import type { Policies } from '../policies/index.ts'
import type { Rules } from '../rules/index.ts'
import type { Sensors } from '../sensors/index.ts'
import type { Triggers } from '../triggers/index.ts'
import { createCatalogue } from './catalogue.ts'
import { createCatalogueRoutes } from './catalogue-routes.ts'
import { createConfigRoutes } from './config-routes.ts'
import { createConfigs } from './configs.ts'
import { makeDefaultPack } from './default-pack.ts'
import { createFolderProblems } from './folder-problems.ts'
import type { VirtualenvBuilder } from './environments.ts'
import { createInstaller } from './install.ts'
import { createInstallRoutes, type StartExecution } from './install-routes.ts'
import { createOverrides } from './overrides.ts'
import type { PackProblem } from './read.ts'
import { createRegisterRoute } from './register-route.ts'
import { timed, type PackRegistration } from './register.ts'
import type { PacksSettings } from './settings.ts'
import { createPackRoutes } from './routes.ts'
import { createPackService } from './service.ts'
import { createPackStore } from './store.ts'
import { createPackVersions, type PackVersions } from './versions.ts'
import { createWatcher, type Watcher } from './watcher.ts'
import type { PackRecord } from './types.ts'
import type { TemplateReader } from '../../core/template-reader.ts'
import { configNotUsed } from '../../core/errors.ts'
import type { PackConfigs } from '../executions/ports.ts'

export interface Packs extends Module, PackConfigs {
  /** Reads a pack folder and registers its content; problems are returned and logged. One at a time. */
  register(folder: string): Promise<PackRegistration>
  /** Deletes the registered content of the pack; its files stay. @returns content that stays, and why */
  unregister(ref: string): Promise<PackProblem[]>
  /** What executions of the pack `packs` do. */
  readonly manager: PackManager
  /** Their files as of git revisions. */
  readonly versions: Pick<PackVersions, 'hold'>
  /** The record is as it was stored. */
  find(ref: string): PackRecord | undefined
}

export interface PacksDeps {
  database: Database
  triggers: Triggers
  actions: Actions
  rules: Rules
  readonly aliases: Pick<Aliases, 'registerAliases'>
  policies: Pick<Policies, 'registerPolicies' | 'typeCount'>
  sensors: Pick<Sensors, 'check' | 'registerSensors' | 'packChanged'>
  notifications: Pick<Notifications, 'usePack' | 'forgetPack'>
  encryption: Encryption
  log: Log
  metrics: Metrics
  /** What templates of configurations may read. */
  readonly templates: (reader: TemplateReader) => TemplateScope
  startExecution: StartExecution
  virtualenvs: VirtualenvBuilder
  /** For indexes of packs. */
  readonly get: HttpGet
  /** Of every runner the program has. */
  runnerTypes: readonly RunnerTypeDefinition[]
  settings: PacksSettings
}

/** `standard` and `backstop`. */
const RULE_TYPES = 2

export function createPacks(deps: PacksDeps): Packs {
  const {
    database,
    triggers,
    actions,
    rules,
    aliases,
    policies,
    sensors,
    notifications,
    encryption,
    log,
    templates,
    runnerTypes,
    settings,
  } = deps
  const store = createPackStore(database)
  const lock = createKeyedLock()
  const withLock = <T>(work: () => Promise<T>): Promise<T> => lock('packs', work)
  const configs = createConfigs({ database, store, encryption, templates, folder: settings.configsPath })
  const folderProblems = createFolderProblems({ ...settings, log })
  const service = createPackService({
    owners: {
      database,
      store,
      configs,
      overrides: createOverrides(settings.overridesPath),
      triggers,
      actions,
      rules,
      aliases,
      policies,
      sensors,
      notifications,
      virtualenvs: deps.virtualenvs,
      metrics: deps.metrics,
    },
    withLock,
    log,
    shipped: ['core', 'packs'].map((name) => shippedFolder(name, settings.cachePath)),
    basePaths: settings.basePaths,
    folderProblems,
  })
  const { maxPageSize } = settings
  const [packsFolder = ''] = settings.basePaths
  const catalogue = createCatalogue(settings.indexUrls, deps.get)
  const versions = createPackVersions({ folder: settings.versionsPath, packsFolder })
  const installer = createInstaller({
    packsFolder,
    shipped: new Map(installable.map((name) => [name, shippedFolder(name, settings.cachePath)])),
    catalogue,
    version,
    find: (ref) => store.findPackByRef(ref),
    service,
    virtualenvs: deps.virtualenvs,
    versions,
    log,
  })

  const reporting = async (work: () => Promise<unknown>): Promise<void> => {
    try {
      await work()
    } catch (error) {
      log.error('packs.failed', 'Could not register changed packs', { error })
    }
  }
  const makeWatcher = (): Watcher =>
    createWatcher({
      log,
      basePaths: settings.basePaths,
      configsPath: settings.configsPath,
      overridesPath: settings.overridesPath,
      packFolders: () => service.folders(),
      changed: (folders, packs) => reporting(() => service.registerSome(folders, packs)),
    })
  let watcher = makeWatcher()
  /** Of the directories; of what is in them: `watcher`. */
  let places: FolderWatch | undefined
  async function preparePacksFolder(): Promise<void> {
    await makeFolder(packsFolder)
    await installer.recover()
    await makeDefaultPack(packsFolder).catch((error: unknown) => {
      const folder = join(packsFolder, defaultPack)
      const message = `The pack "${defaultPack}" cannot be created in ${folder}: ${describeFileError(folder, error)}. Content created through the API needs it: permit the server's account to write there, then restart the server`
      log.warning('packs.no_default', message, { folder })
    })
  }
  let isStopped = false

  let watching: Promise<void> = Promise.resolve()

  /** The watch so far was of a directory that is gone. */
  function watchAgain(): void {
    const before = watcher
    watcher = makeWatcher()
    watching = Promise.all([watching, before.stop()]).then(() =>
      reporting(async () => {
        if (isStopped) return
        await watcher.start()
        if (!isStopped) await service.registerChanged()
      }),
    )
  }

  function watchPlaces(): Promise<FolderWatch> {
    return watchFolders({
      paths: [...settings.basePaths, settings.configsPath],
      lost: (folder, why) => log.error('packs.gone', folderProblems.describeLoss(folder, why), { folder }),
      back(folder) {
        log.warning('packs.back', 'A directory of packs or of their configurations can be used again', { folder })
        if (settings.watch) watchAgain()
      },
    })
  }

  return {
    name: 'packs',
    routes: [
      ...createCatalogueRoutes(catalogue),
      ...createPackRoutes({ store, configs, virtualenvs: deps.virtualenvs, maxPageSize }),
      createRegisterRoute({
        service,
        log,
        registerTypes: {
          async runner() {
            await timed(deps.metrics, 'runners', actions.registerRunnerTypes(runnerTypes))
            return runnerTypes.length
          },
          rule_type: () => RULE_TYPES,
          policy_type: () => policies.typeCount,
        },
      }),
      ...createConfigRoutes({
        store,
        configs,
        log,
        withLock,
        changed: (pack) => sensors.packChanged(pack),
        maxPageSize,
        maskSecrets: settings.maskSecrets,
      }),
      ...createInstallRoutes(deps.startExecution),
    ],
    manager: installer,
    versions,
    register: (folder) => service.register(folder),
    unregister: (ref) => service.unregister(ref),
    find: (ref) => store.findPackByRef(ref),
    resolve(pack, reader) {
      const config = configs.resolve(pack, reader)
      if (config.problem !== undefined) throw configNotUsed(pack, config.problem)
      return config
    },
    readiness() {
      const [first] = places?.lost ?? []
      return first === undefined
        ? undefined
        : { reason: 'packs_gone', problem: `${folderProblems.describeLoss(...first)}.` }
    },
    async start() {
      await timed(deps.metrics, 'runners', actions.registerRunnerTypes(runnerTypes))
      await makeFolder(settings.configsPath).catch((error: unknown) =>
        folderProblems.report(settings.configsPath, error),
      )
      await makeFolder(settings.overridesPath).catch(() => undefined) // without it there are no overrides
      await preparePacksFolder().catch((error: unknown) => folderProblems.report(packsFolder, error))
      // What changes while svc looks at everything is noticed too.
      if (settings.watch) await watcher.start()
      const [problem] = await service.registerChanged(true)
      if (problem !== undefined) throw new Error(`A pack of the program is damaged: ${describeProblem(problem)}`)
      places ??= await watchPlaces()
    },
    async reload() {
      await service.registerChanged()
    },
    async stop() {
      isStopped = true
      places?.stop()
      await watcher.stop()
      await watching
      // Waits for the registration under way.
      await withLock(() => Promise.resolve())
    },
  }
}

/** Included in svc; installed only on request by name. */
const installable = ['chatops', 'examples', 'linux']

/** Beside this file in the sources, in `packs/` after the build. */
function shippedFolder(name: string, cacheFolder: string): string {
  return pathOnDisk(locatePart(`./${name}/`, `./packs/${name}/`, import.meta.url), cacheFolder)
}

export type { VirtualenvBuilder } from './environments.ts'
export type { PackProblem } from './read.ts'
export type { PackRegistration } from './register.ts'

export { packsSettings } from './settings.ts'
