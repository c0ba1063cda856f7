/** The running server: its version, and whether it runs actions. */
import { version } from '../core/version.ts'
import { ok, failedCheck, skipped, warning, type HealthCheck } from './check.ts'

export const server: HealthCheck = {
  name: 'server',
  run({ loaded: { config }, running }) {
    if (running === undefined) return [skipped(`No server runs with the base path ${config.system.base_path}.`)]
    if (running.version === version) return [ok(`Version ${version} runs as process ${running.pid}.`)]
    return [
      warning(
        `Process ${running.pid} runs version ${running.version || 'unknown'}; the installed version is ${version}.`,
        'To run the installed version: svc restart',
      ),
    ]
  },
}

/** Contract 03, 3.11. */
export const execution: HealthCheck = {
  name: 'execution',
  async run({ running, probe }) {
    if (running === undefined) return [skipped('No server runs.')]
    const found = await probe()
    if ('milliseconds' in found) return [ok(`The server ran core.local in ${found.milliseconds} ms.`)]
    return [
      failedCheck(
        `The server could not run core.local: ${found.failure}`,
        'See "svc status" and the log of the server for the reason.',
      ),
    ]
  },
}
