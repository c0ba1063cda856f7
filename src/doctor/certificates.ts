/** Certificates of the listeners. */
import { readTlsIdentity } from '../http/index.ts'
import { listenerNames, ok, failedCheck, skipped, warning, type HealthCheck } from './check.ts'

const SOON_DAYS = 30
const DAY_MS = 86_400_000

export const certificates: HealthCheck = {
  name: 'certificates',
  async run({ loaded: { config }, now }) {
    const secure = listenerNames.filter((name) => config[name].use_ssl)
    if (secure.length === 0) return [skipped('No listener uses TLS.')]
    const results = await Promise.all(
      secure.map(async (name) => {
        const today = now()
        const reading = await readTlsIdentity(name, config[name], today)
        if ('problems' in reading) {
          return reading.problems.map((text) =>
            failedCheck(`${text}.`, 'Correct the file or the option, then run "svc reload".'),
          )
        }
        const { validTo, warnings } = reading.identity
        if (warnings.length > 0) {
          const remedy = 'Replace the files or correct their permissions, then run "svc reload".'
          return warnings.map((text) => (validTo <= today ? failedCheck : warning)(`${text}.`, remedy))
        }
        const left = Math.floor((validTo.getTime() - today.getTime()) / DAY_MS)
        const until = `The certificate of the ${name} listener expires on ${validTo.toISOString()}`
        if (left >= SOON_DAYS) return [ok(`${until}.`)]
        return [
          warning(`${until}, in ${left} days.`, 'Renew the certificate, replace the file, then run "svc reload".'),
        ]
      }),
    )
    return results.flat()
  },
}
