/** The certificates of the listeners, from the files that the configuration names. */
import { ConfigProblems, type Config } from '../config/index.ts'
import type { Log } from '../lib/log/index.ts'
import type { Listener } from './listeners.ts'
import { surfaces, type Surface } from './route.ts'
import { readTlsIdentity, type TlsIdentity } from './tls.ts'

/** Reads the certificate of each listener that uses TLS. @throws ConfigProblems with every problem of the files */
export async function readIdentities(config: Config, log: Log): Promise<ReadonlyMap<Surface, TlsIdentity>> {
  const identities = new Map<Surface, TlsIdentity>()
  const problems: string[] = []
  for (const surface of surfaces) {
    if (!config[surface].use_ssl) continue
    const reading = await readTlsIdentity(surface, config[surface])
    if ('problems' in reading) {
      problems.push(...reading.problems)
      continue
    }
    identities.set(surface, reading.identity)
    for (const warning of reading.identity.warnings) log.warning('tls.warning', warning)
  }
  if (problems.length > 0) throw new ConfigProblems(problems)
  return identities
}

/** Loads the certificate of a TLS listener again from its files, and logs their problems. */
export async function renewIdentity(listener: Listener, config: Config, log: Log): Promise<void> {
  const { surface } = listener
  if (!config[surface].use_ssl) return
  const reading = await readTlsIdentity(surface, config[surface])
  if ('problems' in reading) {
    for (const problem of reading.problems) {
      log.error('tls.not_renewed', `${problem}; the ${surface} listener keeps its current certificate`)
    }
    return
  }
  const { validTo, warnings } = reading.identity
  listener.renew(reading.identity)
  log.info('tls.renewed', 'A listener has loaded its certificate again', { listener: surface, valid_to: validTo })
  for (const warning of warnings) log.warning('tls.warning', warning)
}
