/** The running server: its version, whether it is ready, and whether it runs actions. */
import { version } from '../core/version.ts'
import { isObject } from '../lib/schema/index.ts'
import { readJson } from '../lib/json/index.ts'
import { ok, failedCheck, skipped, warning, type HealthCheck } from './check.ts'

const ANSWER_MS = 5000
const MAX_ANSWER_CHARACTERS = 10_000

export const server: HealthCheck = {
  name: 'server',
  async run({ loaded: { config }, running, status }) {
    const { base_path: basePath } = config.system
    if (running === undefined) {
      const { host, port, use_ssl: isTls } = config.api
      const url = `${isTls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`
      const reasons = port === 0 ? [] : await readReasons(url)
      if (!reasons.includes('base_path_gone')) return [skipped(`No server runs with the base path ${basePath}.`)]
      return [
        failedCheck(
          `A server runs at ${url}, and its base path was deleted, moved or is not accessible. It reports: ${reasons.join(', ')}.`,
          `Put ${basePath} back with its permissions; the server then continues by itself. Or stop its process, which the check "listeners" names.`,
        ),
      ]
    }
    const { notReady = [], growingTraces = [], cutTraces = [], lateRules = 0 } = (await status()) ?? {}
    if (notReady.length > 0) {
      return notReady.map(({ reason, problem }) =>
        failedCheck(
          `Process ${running.pid} is not ready (${reason}): ${problem}`,
          'Do what the finding says. The server then continues by itself; "svc status" shows when.',
        ),
      )
    }
    const cut = cutTraces.map(({ id, rule }) =>
      warning(
        `Rules start each other: svc cut trace ${id} at rule "${rule}".`,
        `Look at it with "svc trace get ${id}". Change the criteria of the rule, or disable it with "svc rule disable ${rule}". rules.max_depth and rules.max_cascade are the limits.`,
      ),
    )
    const grown = growingTraces.map((id) =>
      warning(
        `Trace ${id} has grown by more than 1,000 members within a minute.`,
        `Look at it with "svc trace get ${id}". If rules start each other, disable one of them with "svc rule disable".`,
      ),
    )
    const warnings = [...cut, ...grown]
    if (lateRules > 0) {
      warnings.push(
        warning(
          lateRules === 1 ? '1 job is late.' : `${lateRules} jobs are late.`,
          'Look at them with "svc job list --late"; "svc job get <ref>" says why.',
        ),
      )
    }
    if (running.version === version) {
      return warnings.length > 0 ? warnings : [ok(`Version ${version} runs as process ${running.pid}.`)]
    }
    return [
      ...warnings,
      warning(
        `Process ${running.pid} runs version ${running.version || 'unknown'}; the installed version is ${version}.`,
        'To run the installed version: svc restart',
      ),
    ]
  },
}

/** The reasons in `/readyz`; none when no server of svc answers. */
async function readReasons(url: string): Promise<string[]> {
  const { get } = process.getBuiltinModule(url.startsWith('https:') ? 'node:https' : 'node:http')
  const text = await new Promise<string>((resolve) => {
    // The certificate may be for other names; the request contains no secret.
    const asked = get(`${url}/readyz`, { rejectUnauthorized: false, timeout: ANSWER_MS }, (response) => {
      let received = ''
      response
        .setEncoding('utf8')
        .on('data', (part: string) => (received = (received + part).slice(0, MAX_ANSWER_CHARACTERS)))
      response.once('close', () => resolve(received))
    })
    asked.once('timeout', () => asked.destroy())
    asked.once('error', () => resolve(''))
  })
  try {
    const answer = readJson(text)
    const reasons: unknown = isObject(answer) ? answer['reasons'] : undefined
    return Array.isArray(reasons) ? reasons.map(String) : []
  } catch {
    return []
  }
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
