/** The server that runs: which one it is, and whether it runs actions. */
import { version } from '../core/version.ts'
import { ok, problem, skipped, warning, type Check } from './check.ts'

export const server: Check = {
  name: 'server',
  look({ loaded: { config }, running }) {
    if (running === undefined) return [skipped(`No server runs with the base path ${config.system.base_path}.`)]
    if (running.version === version) return [ok(`Version ${version} runs as process ${running.pid}.`)]
    return [
      warning(
        `Process ${running.pid} is version ${running.version || 'unknown'}, and installed is ${version}.`,
        'Have the installed version take over: svc restart',
      ),
    ]
  },
}

/** Contract 03, 3.11. */
export const execution: Check = {
  name: 'execution',
  async look({ running, probe }) {
    if (running === undefined) return [skipped('No server runs that could run an action.')]
    const found = await probe()
    if ('milliseconds' in found)
      return [ok(`The action core.local was run, and its result read, in ${found.milliseconds} ms.`)]
    return [
      problem(
        `The action core.local could not be run: ${found.failure}`,
        '"svc status" tells what keeps the server from its work, and its log tells more.',
      ),
    ]
  },
}
