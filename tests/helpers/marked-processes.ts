import { readdirSync, readFileSync } from 'node:fs'

/** Pids of the processes, zombies left out, whose environment holds `name=value`, or whose command line holds the text. */
export function markedProcesses(text: string): number[] {
  const found: number[] = []
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) continue
    try {
      const environment = readFileSync(`/proc/${name}/environ`, 'latin1')
      const commandLine = readFileSync(`/proc/${name}/cmdline`, 'latin1')
      if (environment.includes(text) || commandLine.includes(text)) found.push(Number(name))
    } catch {
      // It ended between the two looks.
    }
  }
  return found
}

export function isRunning(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return !/\) [ZX] /.test(stat)
  } catch {
    return false
  }
}
