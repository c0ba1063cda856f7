/** `svc run`: runs an action; also what `action execute` and `execution re-run` share with it (contract 09, 9.4). */
import { InvalidArgumentError, Option } from 'commander'
import { cliProcess } from '../cli-process.ts'
import { secretMask } from '../../lib/log/index.ts'
import { mustBeGiven, parametersOf, type ActionParameter } from '../action-parameters.ts'
import { CliCommand } from '../command.ts'
import { segment } from '../connection/client.ts'
import { recordIn, textOrEmpty, toObject } from '../connection/responses.ts'
import { exitCodeOf, getWithRetry, shownId, recordStatusOf } from '../executions/calls.ts'
import { isWorkflow } from '../executions/tasks.ts'
import { waitForEnd } from '../executions/wait.ts'
import { exitCodes } from '../exit-codes.ts'
import { noteStillRunning, followUpCommands } from '../executions/follow-up.ts'
import { printExecution, type DisplayOptions } from '../executions/details.ts'
import { CliFailure, HttpFailure, Interrupted, NotFound } from '../failures.ts'
import { askAtInterrupt, type InterruptibleResult } from '../executions/interruption.ts'
import { addCommonOptions, addWidthOption, splitAttributes, type CommonFlags } from '../options.ts'
import { isAssignment, parseParameters, type InputSchemas } from '../input/parameters.ts'
import { attributeOf, cellText, printable, wrapText, type Json } from '../output/print.ts'
import { withSession, type CommandContext, type Session } from '../session.ts'
import { tailExecution } from '../executions/tail.ts'
import { writeJson } from '../../lib/json/index.ts'

export const actionName = 'Action'

/** How an execution is shown: what `addDisplayOptions` adds. */
export interface DisplayFlags extends Omit<DisplayOptions, 'attributes' | 'showLog'> {
  key?: string
  attr?: string[]
}

interface RunFlags extends CommonFlags, DisplayFlags {
  async?: boolean
  inheritEnv?: boolean
  user?: string
  traceTag?: string
  traceId?: string
  delay?: number
  tail?: boolean
  trace_tag?: string
  autoDict?: boolean
  actionHelp?: boolean
}

export interface RerunFlags extends RunFlags {
  tasks?: string[]
  reset?: string[] | boolean
}

export function createRunCommand(context: CommandContext): CliCommand {
  return configureRun(new ActionCommand('run'), context, false)
    .description('Run an action and wait for its result.')
    .notes(
      'From the first word without =, all words form the value of the parameter `cmd`, if the action has one. Options of svc go before that word. `svc run <action> -h` lists the parameters; `svc help parameters` explains how to write values.',
      'While svc waits, it shows progress on standard error. Ctrl-C at a terminal asks whether to leave the execution running, cancel it or keep waiting; without a terminal the execution keeps running. If you leave it running, svc prints how to check on it and how to cancel it. If the server restarts, svc waits for it for up to a minute.',
    )
    .examples(
      'svc run core.local date -R',
      "svc run core.local cmd='make test' cwd=/srv/app timeout=600",
      'svc run -k stdout core.local hostname',
      'svc run --tail core.local -- tail -f /var/log/syslog',
    )
}

export function createExecuteCommand(context: CommandContext): CliCommand {
  return configureRun(new ActionCommand('execute'), context, true)
    .description('Run an action without waiting for its result.')
    .examples("svc action execute core.local cmd='make test'")
}

/**
 * Tells options of svc from words for the action before commander looks at them: after the reference, the first word that
 * is no assignment ends the options, and `-h` asks for the help of that action.
 */
export class ActionCommand extends CliCommand {
  override parseOptions(argv: string[]): ReturnType<CliCommand['parseOptions']> {
    return super.parseOptions(splitAtCommand(argv, this))
  }
}

function splitAtCommand(args: readonly string[], command: CliCommand): string[] {
  const split = [...args]
  let hasRef = false
  for (let index = 0; index < split.length;) {
    const arg = command.withLongName(split[index] ?? '')
    if (arg === '--') return split
    split[index] = arg
    if (hasRef && (arg === '-h' || arg === '--help')) split[index] = '--action-help'
    const length = command.optionLength(split, index)
    if (length === 0) {
      if (hasRef && !isAssignment(arg)) return split.toSpliced(index, 0, '--')
      hasRef = true
    }
    index += Math.max(1, length)
  }
  return split
}

/** Options of every command that starts an execution. */
export function addRunOptions(command: CliCommand): CliCommand {
  addCommonOptions(command)
    .option('-a, --async', 'do not wait for the result')
    .option('--tail', 'print the output live')
    .option(
      '-e, --inherit-env',
      'pass the environment variables as the parameter `env`, except those of this machine, shell and client (PATH, HOME, SVC_...)',
    )
    .option('-u, --user <name>', 'run the action as this user')
    .option('--delay <milliseconds>', 'delay the start by this many milliseconds', parseCount)
    .option('--auto-dict', 'convert list items such as key:value to an object')
    .addOption(new Option('--action-help').hideHelp())
  return addDisplayOptions(command)
}

/** @param attr how the option for attributes is written; where something is run, `-a` means `--async` */
export function addDisplayOptions(command: CliCommand, attr = '--attr'): CliCommand {
  return addWidthOption(command)
    .option('-k, --key <key>', 'print only this key of the result; text without quotes')
    .option('-d, --detail', 'print every attribute, as a table')
    .option(`${attr} <name...>`, 'attributes to print, such as status or result.stdout')
    .option('--raw', 'print a workflow like a single action, without its child executions')
    .option('--show-tasks', 'also print the table of child executions')
    .option('--depth <levels>', 'levels of child executions to print; default: all', parseCount)
    .option('--with-schema', 'suggest an output_schema from this result, if the action has none')
}

function parseCount(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError('It must be a whole number, 0 or more.')
  return Number(text)
}

function configureRun(command: CliCommand, context: CommandContext, isAsync: boolean): CliCommand {
  command
    .completions({ parameters: 'parameters' })
    .argument('<action>', 'reference of the action, such as core.local')
    .argument('[parameters...]', 'name=value, or @name=path to read the value from a file')
    .option('--trace-tag <tag>', 'tag of the trace to start or join')
    .option('--trace-id <id>', 'id of the trace to join; overrides --trace-tag')
    // As StackStorm's client writes it.
    .addOption(new Option('--trace_tag <tag>').hideHelp())
  return addRunOptions(command).action((ref: string, words: string[], flags: RunFlags) =>
    withSession(context, flags, (session) => run(session, ref, words, { async: isAsync, ...flags })),
  )
}

async function run(session: Session, ref: string, words: string[], flags: RunFlags): Promise<number> {
  if (flags.actionHelp === true) return printActionHelp(session, ref)
  const parameters = await readParameters(session, ref, words, flags)
  const trace = { ...named('trace_tag', flags.traceTag ?? flags.trace_tag), ...named('id_', flags.traceId) }
  const body = {
    action: ref,
    parameters,
    ...named('user', flags.user),
    ...named('delay', flags.delay),
    ...(Object.keys(trace).length === 0 ? {} : { context: { trace_context: trace } }),
  }
  return showProgress(session, await create(session, '/executions', body), flags)
}

/** Creates an execution on the server. @returns its record */
export async function create(session: Session, path: string, body: Json): Promise<Json> {
  try {
    return recordIn(await session.client.call('POST', path, { body }))
  } catch (error) {
    if (error instanceof Interrupted) {
      session.note('\nThe server may still have created the execution. Check with: svc execution list\n')
    }
    throw error
  }
}

function named(name: string, value: unknown): Json {
  return value === undefined ? {} : { [name]: value }
}

/** The parameters of `words`, cast as the action declares them. @throws NotFound, CliFailure */
export async function readParameters(
  session: Session,
  ref: string,
  words: readonly string[],
  flags: RunFlags,
): Promise<Json> {
  const view = await viewOf(session, 'parameters', ref)
  // The client reads of each schema only what it checks for itself.
  const schemas = toObject(view['parameters']) as InputSchemas
  if (session.settings.debug) {
    const { secretNames } = await import('../input/questions.ts')
    session.client.maskNames(secretNames({ properties: schemas }))
  }
  const parameters = parseParameters(words, schemas, { autoDict: flags.autoDict === true })
  if (flags.inheritEnv !== true) return parameters
  return { ...parameters, env: { ...inheritedEnvironment(cliProcess().env), ...toObject(parameters['env']) } }
}

async function viewOf(session: Session, view: 'parameters' | 'overview', ref: string): Promise<Json> {
  if (ref === '') throw new NotFound(actionName, ref)
  try {
    return recordIn(await session.client.call('GET', `/actions/views/${view}/${segment(ref)}`))
  } catch (error) {
    if (!(error instanceof HttpFailure && error.status === 404)) throw error
    const { suggestActions } = await import('../suggestions.ts')
    throw new NotFound(actionName, ref, await suggestActions(session, ref))
  }
}

/**
 * Variables that describe this machine or this shell mean nothing elsewhere, and the credentials of this client stay
 * here.
 */
const notInherited =
  /^(?:PATH|PWD|OLDPWD|HOME|SHELL|SHLVL|USER|LOGNAME|USERNAME|MAIL|_|TERM|TERMCAP|COLORTERM|LS_COLORS|LINES|COLUMNS|HOSTNAME|DISPLAY|EDITOR|VISUAL|PAGER|IFS|ENV|BASH.*|PS\d|PROMPT_COMMAND|HIST.*|TMPDIR|PYTHON.*|NODE_.*|npm_.*|LD_.*|SUDO_.*|SSH_.*|GPG_.*|XDG_.*|DBUS_.*|SVC_.*|ST2_.*)$/i

function inheritedEnvironment(env: NodeJS.ProcessEnv): Json {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !notInherited.test(name)))
}

/** Waits, follows the output or prints how to follow it, depending on the flags. @returns the exit code */
export async function showProgress(session: Session, created: Json, flags: RunFlags): Promise<number> {
  const id = textOrEmpty(created['id'])
  const display = { ...flags, attributes: splitAttributes(flags.attr) }
  if (flags.async === true && flags.tail !== true) {
    if (session.form === 'human') await session.print(followUpCommands(id))
    else await printExecution(session, created, display)
    return exitCodeOf(recordStatusOf(created))
  }
  const isTailed = flags.tail === true
  const tellsTasks = session.form === 'human' && flags.raw !== true && flags.key === undefined && isWorkflow(created)
  const wait = (): Promise<string> =>
    isTailed ? tailExecution(session, created, { includeMetadata: false }) : waitForEnd(session, id, tellsTasks)
  let outcome: InterruptibleResult<string>
  let record: Json
  try {
    outcome = await askAtInterrupt(session, id, wait)
    record = isTailed ? { status: outcome.value } : await getWithRetry(session, id)
  } catch (error) {
    noteStillRunning(session, id, error)
    throw error
  }
  if (!isTailed && flags.key !== undefined) await printKey(session, record, flags.key)
  else if (!isTailed) await printExecution(session, record, display)
  return outcome.isCanceled ? exitCodes.interrupted : exitCodeOf(recordStatusOf(record))
}

/** Prints one key of the result: text as it is, anything else in the form asked for. */
export async function printKey(session: Session, record: Json, key: string): Promise<void> {
  const result = record['result']
  const value = attributeOf(result, key)
  if (value === undefined) {
    const keys = Object.keys(toObject(result))
    const instead = keys.length === 0 ? 'the result is empty.' : `its keys: ${keys.join(', ')}.`
    const error = textOrEmpty(attributeOf(result, 'error'))
    // A failed execution has no output: the error says why.
    const why = error === '' ? '' : `\nThe execution is ${recordStatusOf(record)}: ${error}`
    throw new CliFailure(`The result of execution ${textOrEmpty(record['id'])} has no key "${key}"; ${instead}${why}`)
  }
  if (session.form !== 'human') await session.printMachine(value)
  else if (typeof value === 'string') await session.print(`${cliProcess().stdout.isTTY ? printable(value) : value}\n`)
  else await session.print(`${cellText(value ?? 'null')}\n`)
  // Without the warning, truncated output in a file would look complete.
  if (attributeOf(result, `${key}_truncated`) === true) {
    const id = textOrEmpty(record['id'])
    session.warn(`"${key}" is truncated. To print the whole output: svc execution tail ${shownId(id)}`)
  }
}

/** Prints the parameters of an action. @returns the exit code */
export async function printActionHelp(session: Session, ref: string): Promise<number> {
  const action = await viewOf(session, 'overview', ref)
  const shown = parametersOf(action)
  const required = shown.filter(mustBeGiven)
  const optional = shown.filter((parameter) => !mustBeGiven(parameter))
  const width = Math.max(40, session.terminalWidth ?? 100)
  const parts = [
    wrapText(printable(textOrEmpty(action['description'])) || ref, width).join('\n'),
    ...(required.length === 0 ? [] : ['Required Parameters:', ...required.map((each) => describe(each, width))]),
    ...(optional.length === 0 ? [] : ['Optional Parameters:', ...optional.map((each) => describe(each, width))]),
    ...(shown.length === 0 ? ['This action has no parameters.'] : []),
  ]
  await session.print(`${parts.join('\n\n')}\n`)
  return exitCodes.ok
}

function describe({ name, schema }: ActionParameter, width: number): string {
  const lines = [`    ${printable(name)}`]
  const add = (text: string): unknown => lines.push(...wrapText(text, width - 8).map((line) => `        ${line}`))
  const description = printable(textOrEmpty(schema['description']))
  if (description !== '') add(description)
  if (schema['type'] !== undefined) add(`Type: ${cellText(schema['type'])}`)
  if (Array.isArray(schema['enum'])) add(`Enum: ${schema['enum'].map(compact).join(', ')}`)
  const value = schema['default']
  if (value !== undefined && value !== null) add(`Default: ${schema['secret'] === true ? secretMask : compact(value)}`)
  return lines.join('\n')
}

function compact(value: unknown): string {
  return printable(typeof value === 'string' ? value : writeJson(value))
}
