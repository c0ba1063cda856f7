/** The server where `svc service install` has made a service of systemd of it. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { CliFailure } from '../failures.ts'
import { paths, unitName } from '../service/unit.ts'

/** Whether a server with these configuration files is what the unit starts. */
export function isService(files: readonly string[]): boolean {
  const [file, ...others] = files
  return file === paths.configuration && others.length === 0 && isInstalled()
}

function isInstalled(): boolean {
  return existsSync('/run/systemd/system') && existsSync(paths.unit)
}

/** Of the process that the unit has started; undefined when there is none. */
export function pidOfService(): number | undefined {
  if (!isInstalled()) return undefined
  const { stdout } = spawnSync('systemctl', ['show', '--property=MainPID', '--value', unitName], { encoding: 'utf8' })
  const pid = Number(stdout?.trim())
  return Number.isSafeInteger(pid) && pid > 0 ? pid : undefined
}

/** Returns when systemd has done it. @throws CliFailure */
export function tellSystemd(verb: 'start' | 'stop'): void {
  const { status } = spawnSync('systemctl', [verb, unitName], { stdio: ['ignore', 'inherit', 'inherit'] })
  if (status === 0) return
  const why = process.getuid?.() === 0 ? '"journalctl -u svc" tells why' : 'it may be that only root can do it'
  throw new CliFailure(`"systemctl ${verb} svc" has failed; ${why}.`)
}
