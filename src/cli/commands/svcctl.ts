/**
 * `svcctl` (contract 10, 10.6): what operators of existing installations know. The components that it speaks of are parts of
 * one process here, so whatever is done to one of them is done to all.
 */
import { cliProcess } from '../cli-process.ts'
import { components } from '../../core/components.ts'
import { CliCommand } from '../command.ts'
import { recordIn, textOf, toList } from '../connection/answers.ts'
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
import { endServer, restartServer, startServer, type ControlFlags } from './control.ts'
import { addRegisterOptions, registerContent, type RegisterContentFlags } from './register-content.ts'

/** What `reload` registers by itself: all but policies. */
const usualKinds = ['runners', 'actions', 'aliases', 'sensors', 'triggers', 'configs', 'rules'] as const

export function createSvcctl(context: CommandContext): CliCommand {
  const { setExitCode } = context
  const add = (name: string, about: string): CliCommand =>
    addServerConfigOption(new CliCommand(name).description(about))
  const fail = (message: string): void => {
    cliProcess().stdout.write(`${printable(message)}${svcctl.helpInformation()}`)
    setExitCode(exitCodes.failed)
  }

  const status = add('status', 'Tell for each component whether it runs, and as which process.').action(
    (flags: ControlFlags) => printStatus(flags),
  )
  const start = add('start', 'Start all components.').action((flags: ControlFlags) => startServer(flags))
  const stop = add('stop', 'Stop all components.').action((flags: ControlFlags) => endServer(flags))
  const restart = add('restart', 'Stop all components and start them again.').action((flags: ControlFlags) =>
    restartServer(flags),
  )
  const restartComponent = add('restart-component', 'Restart the process that the component is a part of: all of them.')
    .argument('[name]', 'of the component, as status tells it')
    .action(async (name: string | undefined, flags: ControlFlags) => {
      if (!isComponent(name)) return fail(unknownComponent(name))
      cliProcess().stdout.write(`${name} is a part of one process with all components: it is restarted as a whole.\n`)
      await restartServer(flags)
    })
  const reopen = add('reopen-log-files', 'Have the component open its log files anew, after they have been renamed.')
    .argument('[name]', 'of the component, as status tells it')
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
    .description('Register what the folders of packs hold: all kinds but policies, unless flags say which.')
    .action(async (flags: RegisterContentFlags) => {
      await withOperatorSession(context, flags, (session) => registerContent(session, flags, usualKinds))
      await printStatus(flags)
    })
  const clean = add('clean', 'Drop all data and logs, and start all components anew.')
    .notes('It asks before. Keys, packs, configurations, passwords and backups stay.')
    .action((flags: ControlFlags) => cleanAll(flags, setExitCode))
  const queues = addOperatorOptions(new CliCommand('queues'))
    .description('Tell how many messages wait in the work queues.')
    .action((flags: OperatorFlags) =>
      withOperatorSession(context, flags, async (session) => {
        const rows = toList(recordIn(await session.client.call('GET', '/status'))['queues'])
        if (session.form !== 'human') await session.printMachine(rows)
        else {
          const cells = rows.map(({ name, length, limit }) => [textOf(name), String(length), String(limit)])
          await session.print(renderTable(['queue', 'messages', 'should stay below'], cells))
        }
        return exitCodes.ok
      }),
    )

  const svcctl = new CliCommand('svcctl')
    .description('Tell how the components of the server are; start and stop them.')
    .notes(
      'All components are parts of one process. The commands of svc that do the same tell more: svc status, svc start, svc stop, svc restart, svc reopen-logs, svc pack register; svc doctor looks for what should be changed.',
    )
    .examples('svcctl status', 'svcctl restart')
    .usage('<command>')
    .argument('[command...]')
    .action(([word]: string[]) => fail(word === undefined ? '' : `There is no command "${word}".\n\n`))
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
  return `${name === undefined ? 'The name of a component is missing' : `There is no component "${name}"`}; there are ${known}.\n\n`
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
  const question = `All executions, rules, keys, users and other records of ${basePath}, and its logs, are going to be deleted. Are you sure? [y/n]`
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
