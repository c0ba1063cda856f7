/** The whole server in the process of the test: the real composition root, configuration files and logs, on free ports. */
import { join } from 'node:path'
import { startApp, type App } from '../../src/app.ts'
import { loadConfig, readLogFiles } from '../../src/config/index.ts'
import type { HttpGet } from '../../src/runners/index.ts'
import { createLog } from '../../src/lib/log/index.ts'
import type { TestClock } from './clock.ts'
import { makeFolder } from './folders.ts'
import { call, writeConfig, type ServerOptions, type TestApp } from './server.ts'
import { TextSink } from './text-sink.ts'

export interface TestAppOptions extends Pick<ServerOptions, 'settings' | 'basePath' | 'ca'> {
  /** Default: the clock of this machine. */
  clock?: TestClock
  /** Default: the internet. */
  get?: HttpGet
}

export type InProcessApp = TestApp & Pick<App, 'reload' | 'collect'>

/** Ten times as quick as a process. Tests that need one, for its signals, its environment or its end, use `startServer`. */
export async function createTestApp(options: TestAppOptions = {}): Promise<InProcessApp> {
  const folder = options.basePath === undefined ? makeFolder() : undefined
  const basePath = options.basePath ?? folder?.path ?? ''
  const configFile = join(basePath, 'test.conf')
  const defaults = { 'auth.port': '0', 'api.port': '0', 'stream.port': '0', 'content.watch': 'False' }
  writeConfig(configFile, { 'system.base_path': basePath, ...defaults, ...options.settings })
  const sink = new TextSink()
  try {
    const loaded = loadConfig({ files: [configFile], env: {}, flags: {}, cwd: basePath })
    const logFiles = readLogFiles(loaded)
    const { level, format, mask_secrets, mask_secrets_blacklist, excludes } = loaded.config.log
    const log = createLog({
      level,
      format,
      maskSecrets: mask_secrets,
      maskNames: mask_secrets_blacklist,
      excludes,
      files: logFiles.files,
      stream: sink,
    })
    for (const warning of [...loaded.warnings, ...logFiles.warnings]) log.warning('config.warning', warning)
    const app = await startApp(loaded.config, log, loaded.files, options.clock, options.get).catch(
      async (error: unknown) => {
        await log.close()
        throw error
      },
    )
    return {
      urls: app.urls,
      basePath,
      configFile,
      log: () => sink.text,
      reload: () => app.reload(),
      collect: () => app.collect(),
      async stop() {
        await app.stop()
        await log.close()
        folder?.remove()
      },
      call: (method, path, body, headers) => call(`${app.urls.api}${path}`, method, body, headers, options.ca),
    }
  } catch (error) {
    folder?.remove()
    throw error
  }
}

/** Runs a server for as long as the test uses it. */
export async function withApp(
  options: TestAppOptions,
  use: (app: InProcessApp) => Promise<void> | void,
): Promise<void> {
  const app = await createTestApp(options)
  try {
    await use(app)
  } finally {
    await app.stop()
  }
}
