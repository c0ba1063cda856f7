/** The checks of `svc doctor`, in display order. */
import { commandAccount } from './account.ts'
import { certificates } from './certificates.ts'
import { skipped, type HealthCheck, type Finding, type CheckContext } from './check.ts'
import { configurations } from './configurations.ts'
import { clock } from './clock.ts'
import { database } from './database.ts'
import { disk } from './disk.ts'
import { environments } from './environments.ts'
import { listeners } from './listeners.ts'
import { locale, openFiles, checkedPrograms, timeZone } from './machine.ts'
import { permissions } from './permissions.ts'
import { configuration, settings } from './settings.ts'
import { execution, server } from './server.ts'

export type { ConfigProblem, Finding, CheckContext, State } from './check.ts'

export const checks: readonly HealthCheck[] = [
  configuration,
  settings,
  server,
  permissions,
  commandAccount,
  disk,
  database,
  clock,
  listeners,
  certificates,
  openFiles,
  checkedPrograms,
  environments,
  configurations,
  locale,
  timeZone,
  execution,
]

/** @param names of checks; empty: all of them */
export async function runChecks(context: CheckContext, names: readonly string[] = []): Promise<Finding[]> {
  const findings: Finding[] = []
  for (const { name, run } of checks) {
    if (names.length > 0 && !names.includes(name)) continue
    try {
      findings.push(...(await run(context)).map((result) => ({ check: name, ...result })))
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      findings.push({ check: name, ...skipped(`This account cannot run the check: ${why}`) })
    }
  }
  return findings
}
