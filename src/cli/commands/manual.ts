/** `svc manual`: the manual page, which is made of the same source as all help. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { CliCommand } from '../command.ts'
import { exitCodes } from '../exit-codes.ts'
import { readReference } from '../reference/tree.ts'
import { renderManual } from '../reference/manual.ts'
import type { CommandContext } from '../session.ts'

export function createManualCommand({ setExitCode }: CommandContext): CliCommand {
  return new CliCommand('manual')
    .description('Show the manual page: all commands, options and topics.')
    .notes(
      'At a terminal "man" shows it, where that is installed. Elsewhere the page is printed in the form that man reads, to be installed or converted.',
    )
    .examples('svc manual', 'svc manual > /usr/local/share/man/man1/svc.1')
    .action(async () => {
      const page = renderManual(await readReference())
      setExitCode(process.stdout.isTTY && hasMan() ? await showWithMan(page) : await print(page))
    })
}

function hasMan(): boolean {
  return spawnSync('man', ['--version'], { stdio: 'ignore' }).error === undefined
}

async function print(page: string): Promise<number> {
  if (!process.stdout.write(page)) await once(process.stdout, 'drain')
  return exitCodes.ok
}

async function showWithMan(page: string): Promise<number> {
  const man = spawn('man', ['-l', '-'], { stdio: ['pipe', 'inherit', 'inherit'] })
  // It is the pager that Ctrl-C is for.
  const ignore = (): void => undefined
  process.on('SIGINT', ignore)
  // Whoever quits the pager at once need not have read everything.
  man.stdin.on('error', ignore)
  man.stdin.end(page)
  try {
    const [code] = (await once(man, 'exit')) as [number | null]
    return code === 0 ? exitCodes.ok : exitCodes.failed
  } finally {
    process.off('SIGINT', ignore)
  }
}
