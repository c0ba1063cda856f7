/** The life cycle of the server as clients see it: starting, ready, stopping. */
import type { Config } from '../config/index.ts'
import type { Module } from '../core/module.ts'
import { controlSocketName, removeRunFile, runFileName, writeRunFile } from '../core/run-file.ts'
import { version } from '../core/version.ts'
import { coalesce } from '../lib/concurrency/index.ts'
import type { RootLog } from '../lib/log/index.ts'
import { createAboutRoutes } from './about.ts'
import type { BasePath } from './base-path.ts'
import { createHttpApp, type HttpAppOptions } from './app.ts'
import { openEntrances, type EntrancesOptions } from './entrances.ts'
import type { Surface } from './route.ts'

export interface ServerOptions
  extends
    Pick<HttpAppOptions, 'access' | 'origins' | 'peers' | 'metrics' | 'notReady' | 'ledger' | 'compat'>,
    Pick<EntrancesOptions, 'identities' | 'connections'> {
  config: Config
  log: RootLog
  basePath: Pick<BasePath, 'keep'>
  /** In start order; they stop in reverse order. */
  modules: readonly Module[]
  /** Receives the address of each listener, with its actual port, as soon as it listens. */
  urls: Record<Surface, string>
  /** Public address of the API, without version and trailing slash. */
  apiUrl(): string
  /** Wire timestamp. */
  startedAt: string
  /** Receives the steps that undo a failed start, in the order in which the start took them. */
  undo: (() => Promise<void>)[]
}

export interface Server {
  /**
   * Reloads the certificates and the other files that operators edit. Calls during a reload share one more reload after
   * it. Never rejects: it logs unusable files, and the server keeps its previous settings.
   */
  reload(): Promise<void>
  /** From now on requests are answered with 503. */
  beginStop(): void
  isStopping(): boolean
  /** The steps that stop the server, in order; `beginStop` comes first. */
  stops: (() => Promise<void> | undefined)[]
}

/** Time for open requests to be answered after the last module has stopped. */
const LAST_ANSWERS_MS = 2000

/** Listens, starts every module, then is ready. @throws errors of modules and listeners */
export async function startServer(options: ServerOptions): Promise<Server> {
  const { config, log, modules, urls, undo } = options
  const basePath = config.system.base_path
  let isStarting = true
  let isStopping = false
  const routes = modules.flatMap((module) => module.routes ?? [])
  const app = createHttpApp({
    ...options,
    routes: [...routes, ...createAboutRoutes({ routes, apiUrl: () => options.apiUrl() })],
    maxBodyBytes: config.api.max_body_bytes,
    events: { heartbeatSeconds: config.stream.heartbeat, maxQueuedBytes: config.stream.client_buffer_bytes },
    logs: { auth: log.of('auth'), api: log.of('api'), stream: log.of('stream') },
    authNeedsTls: config.auth.use_ssl,
    isStarting: () => isStarting,
    isStopping: () => isStopping,
  })
  // Listens before anything runs: actions need the address of the API, and a server without its ports must not touch
  // waiting work.
  const entrances = await openEntrances(app, options)
  undo.push(() => entrances.close(0))
  for (const module of modules) {
    undo.push(async () => module.stop?.())
    await module.start?.()
  }
  isStarting = false
  const writeRun = (): Promise<void> => writeRunFile(basePath, { started_at: options.startedAt, version, urls })
  await writeRun().catch((error: unknown) =>
    log.warning('run_file.failed', 'Could not write the run file: tools cannot find this process', { error }),
  )
  undo.push(() => removeRunFile(basePath))
  options.basePath.keep(runFileName, writeRun)
  options.basePath.keep(controlSocketName, () => entrances.renewControlSocket())

  return {
    reload: coalesce(async () => {
      log.info('server.reloading', 'The server is reloading its files')
      const reloads = modules.map((module) => [module.name, async () => module.reload?.()] as const)
      for (const [name, reload] of [...entrances.reloads, ...reloads]) {
        await reload().catch((error: unknown) =>
          log.error('server.reload_failed', `The module ${name} could not reload; it keeps its previous settings`, {
            error,
          }),
        )
      }
    }),
    beginStop() {
      isStopping = true
    },
    isStopping: () => isStopping,
    stops: [
      ...modules.toReversed().map((module) => async () => module.stop?.()),
      // Last: until then clients get 503 with `Retry-After`, and operators can follow the stop.
      () => entrances.close(LAST_ANSWERS_MS),
      () => removeRunFile(basePath),
    ],
  }
}
