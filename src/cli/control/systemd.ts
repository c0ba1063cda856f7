/** The server as a systemd service that `svc service install` installed. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { CliFailure } from '../failures.ts'
import { paths, unitName } from '../service/unit.ts'

/** Whether the unit starts a server with these configuration files. */
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
export function callSystemctl(verb: 'start' | 'stop'): void {
  const { status } = spawnSync('systemctl', [verb, unitName], { stdio: ['ignore', 'inherit', 'inherit'] })
  if (status === 0) return
  const why = process.getuid?.() === 0 ? 'see "journalctl -u svc"' : 'it may need root'
  throw new CliFailure(`"systemctl ${verb} svc" failed; ${why}.`)
}
