/** `svc manual`: the manual page, generated from the same source as the help. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cliProcess } from '../cli-process.ts'
import { CliCommand } from '../command.ts'
import { hasCode } from '../../lib/process/index.ts'
import { readReference } from '../reference/tree.ts'
import { renderManual } from '../reference/manual.ts'

export function createManualCommand(): CliCommand {
  return new CliCommand('manual')
    .notes(
      'At a terminal, svc shows the page with "man" if that is installed. Otherwise it prints the page in man format, to install or convert.',
    )
    .examples('svc manual', 'svc manual > /usr/local/share/man/man1/svc.1')
    .action(async () => {
      const page = renderManual(await readReference())
      const { stdout } = cliProcess()
      const isShown = stdout.isTTY === true && (await showWithMan(page))
      if (!isShown && !stdout.write(page)) await once(stdout, 'drain')
    })
}

/** @returns false when there is no man, or it does not show the page */
async function showWithMan(page: string): Promise<boolean> {
  const man = spawn('man', ['-l', '-'], { env: cliProcess().env, stdio: ['pipe', 'inherit', 'inherit'] })
  const ignore = (): void => undefined
  // The pager may quit before it has read everything.
  man.stdin.on('error', ignore)
  // Ctrl-C is for the pager.
  cliProcess().on('SIGINT', ignore)
  try {
    await once(man, 'spawn')
    man.stdin.end(page)
    const [code] = await once(man, 'exit')
    return code === 0 || code === null
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false
    throw error
  } finally {
    cliProcess().off('SIGINT', ignore)
  }
}
