/**
 * `svcctl` (contract 10, 10.6): what operators of existing installations know. The components that it speaks of are parts of
 * one process, so an operation on one of them applies to all.
 */
import { cliProcess } from '../cli-process.ts'
import { components } from '../../core/components.ts'
import { CliCommand } from '../command.ts'
import { recordIn, textOrEmpty, toList } from '../connection/responses.ts'
import { dropData } from '../control/clean.ts'
import { findServer, signalServer } from '../control/server.ts'
import { isService, pidOfService } from '../control/systemd.ts'
import { exitCodes } from '../exit-codes.ts'
import { CliFailure } from '../failures.ts'
import { withSecretInput } from '../input/prompt.ts'
import {
  addOperatorOptions,
  addServerConfigOption,
  chooseServerFiles,
  loadServerConfig,
  withOperatorSession,
  type OperatorFlags,
} from '../operator-session.ts'
import { printable, renderTable } from '../output/print.ts'
import type { CommandContext } from '../session.ts'
import { endServer, restartServer, startServerCommand, type ControlFlags } from './control.ts'
import { addRegisterOptions, registerContentCommand, type RegisterContentFlags } from './register-content.ts'

/** The kinds that `reload` registers by default: all except policies. */
const usualKinds = ['runners', 'actions', 'aliases', 'sensors', 'triggers', 'configs', 'rules'] as const

export function createSvcctl(context: CommandContext): CliCommand {
  const { setExitCode } = context
  const add = (name: string, about: string): CliCommand =>
    addServerConfigOption(new CliCommand(name).description(about))
  const fail = (message: string): void => {
    cliProcess().stdout.write(`${printable(message)}${svcctl.helpInformation()}`)
    setExitCode(exitCodes.failed)
  }

  const status = add('status', 'Show for each component whether it runs, with its process id.').action(
    (flags: ControlFlags) => printStatus(flags),
  )
  const start = add('start', 'Start all components.').action((flags: ControlFlags) => startServerCommand(flags))
  const stop = add('stop', 'Stop all components.').action((flags: ControlFlags) => endServer(flags))
  const restart = add('restart', 'Stop all components and start them again.').action((flags: ControlFlags) =>
    restartServer(flags),
  )
  const restartComponent = add('restart-component', 'Restart the server, which includes the component.')
    .argument('[name]', 'component name, as printed by status')
    .action(async (name: string | undefined, flags: ControlFlags) => {
      if (!isComponent(name)) return fail(unknownComponent(name))
      cliProcess().stdout.write(`${name} runs in one process with all components; the whole server restarts.\n`)
      await restartServer(flags)
    })
  const reopen = add('reopen-log-files', 'Make the server reopen its log files after log rotation.')
    .argument('[name]', 'component name, as printed by status')
    .action(async (name: string | undefined, flags: ControlFlags) => {
      if (!isComponent(name)) return fail(unknownComponent(name))
      const config = await loadServerConfig(flags.configFile)
      const server = findServer(config.system.base_path)
      if (server === undefined || !isIncluded(name, config.timersengine.enable)) {
        throw new CliFailure(`${name} is not running.`)
      }
      signalServer(server, 'SIGUSR1')
    })
  const reload = addRegisterOptions(new CliCommand('reload'))
    .description('Register the content of packs. Default: all kinds except policies.')
    .action(async (flags: RegisterContentFlags) => {
      await withOperatorSession(context, flags, (session) => registerContentCommand(session, flags, usualKinds))
      await printStatus(flags)
    })
  const clean = add('clean', 'Delete all data and logs, and restart all components.')
    .notes('The command asks for confirmation. Encryption keys, packs, configurations, passwords and backups stay.')
    .action((flags: ControlFlags) => cleanAll(flags, setExitCode))
  const queues = addOperatorOptions(new CliCommand('queues'))
    .description('Show how many messages wait in the work queues.')
    .action((flags: OperatorFlags) =>
      withOperatorSession(context, flags, async (session) => {
        const rows = toList(recordIn(await session.client.call('GET', '/status'))['queues'])
        if (session.form !== 'human') await session.printMachine(rows)
        else {
          const cells = rows.map(({ name, length, limit }) => [textOrEmpty(name), String(length), String(limit)])
          await session.print(renderTable(['queue', 'messages', 'limit'], cells))
        }
        return exitCodes.ok
      }),
    )

  const svcctl = new CliCommand('svcctl')
    .description('Show, start and stop the components of the server.')
    .notes(
      'All components run in one process. Prefer the equivalent commands, which show more: svc status, svc start, svc stop, svc restart, svc reopen-logs and svc pack register. svc doctor checks the configuration and the machine.',
    )
    .examples('svcctl status', 'svcctl restart')
    .usage('<command>')
    .argument('[command...]')
    .action(([word]: string[]) => fail(word === undefined ? '' : `Unknown command "${word}".\n\n`))
  for (const command of [status, start, stop, restart, restartComponent, reopen, reload, clean, queues]) {
    svcctl.addCommand(command)
  }
  return svcctl
}

function isComponent(name: string | undefined): name is string {
  return components.some((component) => component.name === name)
}

function unknownComponent(name: string | undefined): string {
  const known = components.map((component) => component.name).join(', ')
  return `${name === undefined ? 'Missing component name' : `Unknown component "${name}"`}. Components: ${known}.\n\n`
}

/** Whether it is a part of a server that runs. */
function isIncluded(name: string, hasTimers: boolean): boolean {
  const module = components.find((component) => component.name === name)?.module
  return module !== undefined && (module !== 'timers' || hasTimers)
}

async function printStatus({ configFile }: ControlFlags): Promise<void> {
  const { pid, hasTimers } = await look(configFile)
  const lines = components.map(({ name }) =>
    pid !== undefined && isIncluded(name, hasTimers) ? `${name} PID: ${pid}` : `${name} is not running.`,
  )
  cliProcess().stdout.write(`##### svc components status #####\n${lines.join('\n')}\n`)
}

/** @throws ConfigProblems, CliFailure when this account may not know */
async function look(
  configFile: readonly string[] | undefined,
): Promise<{ pid: number | undefined; hasTimers: boolean }> {
  // Anybody may ask systemd, and not everybody may read the configuration and enter the folder of the server.
  const service = isService(await chooseServerFiles(configFile)) ? pidOfService() : undefined
  try {
    const config = await loadServerConfig(configFile)
    const pid = service ?? findServer(config.system.base_path)?.pid
    return { pid, hasTimers: config.timersengine.enable }
  } catch (error) {
    if (service === undefined) throw error
    return { pid: service, hasTimers: true }
  }
}

async function cleanAll(flags: ControlFlags, setExitCode: CommandContext['setExitCode']): Promise<void> {
  const config = await loadServerConfig(flags.configFile)
  const { base_path: basePath } = config.system
  const question = `Delete all executions, rules, keys, users, other records and logs of ${basePath}? [y/n]`
  const note = (text: string): void => void cliProcess().stderr.write(text)
  const interrupted = new AbortController().signal
  const answer = await withSecretInput({ interrupted, note }, (input) => input.askFor(question, false))
  if (answer.trim() !== 'y') {
    cliProcess().stdout.write('Nothing was deleted.\n')
    setExitCode(exitCodes.failed)
    return
  }
  await restartServer(flags, async () => {
    const logFiles = [config.log.file, config.log.audit_file]
    const gone = await dropData({ database: config.database.path, logFiles, basePath })
    cliProcess().stdout.write(gone.map((path) => `${printable(path)} is deleted.\n`).join(''))
  })
}
