/** `svc action-alias`: chat commands that run actions (contract 09, 9.3; contract 02, 2.13). */
import { CliCommand } from '../command.ts'
import { segment } from '../connection/client.ts'
import { recordIn, textOrEmpty, toObject } from '../connection/responses.ts'
import { exitCodeOf, recordStatusOf } from '../executions/calls.ts'
import { followUpCommands, noteStillRunning } from '../executions/follow-up.ts'
import { askAtInterrupt } from '../executions/interruption.ts'
import { waitForEnd } from '../executions/wait.ts'
import { exitCodes } from '../exit-codes.ts'
import { addCommonOptions, type CommonFlags } from '../options.ts'
import { printable, type Json } from '../output/print.ts'
import {
  addAttributeOption,
  createCreateCommand,
  createDeleteCommand,
  createGetCommand,
  createListCommand,
  createUpdateCommand,
  showRecord,
  type AttributeFlags,
  type CliResource,
  type ListFlags,
  type Operand,
} from '../resources.ts'
import { withSession, type CommandContext, type Session } from '../session.ts'

const alias: CliResource = {
  name: 'Action Alias',
  pluralName: 'Action Aliases',
  path: '/actionalias',
  columns: ['ref', 'pack', 'description', 'enabled'],
  order: ['id', 'uid', 'ref', 'pack', 'name', 'description', 'enabled', 'action_ref', 'formats', 'ack', 'result'],
}
const aliases: Operand = ['<ref...>', 'references or ids']
const commandText: Operand = ['<command...>', 'what a chat user would write']

interface ExecuteFlags extends CommonFlags {
  user?: string
}

interface TestFlags extends ExecuteFlags {
  async?: boolean
}

export function createActionAliasCommand(context: CommandContext): CliCommand {
  const list = createListCommand(context, alias, ({ pack }: ListFlags & { pack?: string }) => ({ pack }))
    .description('List action aliases.')
    .option('-p, --pack <pack>', 'only items of this pack')
    .examples('svc action-alias list -p examples')

  const get = createGetCommand(context, alias, ...aliases)
    .description('Show action aliases with their formats.')
    .examples('svc action-alias get examples.greet')

  const create = createCreateCommand(context, alias)
    .description('Create an action alias. Chats can use it at once.')
    .examples('svc action-alias create uptime.yaml')
    .sample(
      'uptime.yaml',
      `name: uptime
description: Shows how long a host has been up.
action_ref: core.remote
formats: ['uptime of {{ hosts }}']
immutable_parameters: {cmd: uptime}
result: {format: '{{ execution.result }}'}`,
    )

  const update = createUpdateCommand(context, alias, ['<ref>', 'reference or id'])
    .description('Replace an action alias. Attributes that the definition omits get their defaults.')
    .examples('svc action-alias update default.uptime uptime.yaml')

  const remove = createDeleteCommand(context, alias, ...aliases)
    .description('Delete action aliases.')
    .examples('svc action-alias delete default.uptime')

  const match = addAttributeOption(addCommonOptions(new CliCommand('match')))
    .argument(...commandText)
    .action((words: string[], flags: AttributeFlags) =>
      withSession(context, flags, async (session) => {
        const found = await find(session, words)
        const { actionalias, ...format } = found
        const { ref, action_ref: action } = toObject(actionalias)
        const shown = session.form === 'human' ? { ref, action_ref: action, ...format } : found
        const order = ['ref', 'action_ref', 'display', 'representation']
        await showRecord(session, { ...alias, order }, shown, flags)
        return exitCodes.ok
      }),
    )
    .description('Show the alias and the format that a chat command fits; run nothing.')
    .examples('svc action-alias match greet Ann')

  const execute = addCommonOptions(new CliCommand('execute'))
    .argument(...commandText)
    .option('-u, --user <name>', 'the chat user; default: you')
    .action((words: string[], flags: ExecuteFlags) =>
      withSession(context, flags, async (session) => {
        const body = { command: words.join(' '), ...(await callerOf(session, flags)) }
        const answer = recordIn(await session.client.call('POST', '/aliasexecution/match_and_execute', { body }))
        const results = (answer['results'] as Json[] | undefined) ?? [] // of the schema of the answer
        if (session.form !== 'human') await session.printMachine(answer)
        else for (const result of results) await session.print(startedText(result))
        return exitCodes.ok
      }),
    )
    .description('Run what a chat command asks for, without waiting for the result.')
    .examples('svc action-alias execute greet Ann')

  const test = addCommonOptions(new CliCommand('test'))
    .argument(...commandText)
    .option('-u, --user <name>', 'the chat user; default: you')
    .option('-a, --async', 'do not wait for the reply')
    .action((words: string[], flags: TestFlags) =>
      withSession(context, flags, (session) => testCommand(session, words, flags)),
    )
    .description('Run what a chat command asks for, and show what the chat would show.')
    .examples('svc action-alias test greet Ann')

  return new CliCommand('action-alias')
    .addCommand(list)
    .addCommand(get)
    .addCommand(create)
    .addCommand(update)
    .addCommand(remove)
    .addCommand(match)
    .addCommand(execute)
    .addCommand(test)
}

async function find(session: Session, words: readonly string[]): Promise<Json> {
  const body = { command: words.join(' ') }
  return recordIn(await session.client.call('POST', '/actionalias/match', { body }))
}

/** Who says it, and where. */
async function callerOf(session: Session, { user }: ExecuteFlags): Promise<Json> {
  if (user !== undefined) return { user, source_channel: 'cli' }
  const { username } = recordIn(await session.client.call('GET', '/user'))
  return { user: textOrEmpty(username), source_channel: 'cli' }
}

function startedText({ execution, actionalias, message }: Json): string {
  const said = textOrEmpty(message)
  const id = textOrEmpty(toObject(execution)['id'])
  const lines = [`Matching Action Alias: ${textOrEmpty(toObject(actionalias)['ref'])}`, ...(said === '' ? [] : [said])]
  return `${printable(lines.join('\n'))}\n\n${followUpCommands(id)}`
}

/** @returns the exit code of the last execution that failed, else 0 */
async function testCommand(session: Session, words: readonly string[], flags: TestFlags): Promise<number> {
  const body = { command: words.join(' '), ...(await callerOf(session, flags)) }
  const answer = recordIn(await session.client.call('POST', '/aliasexecution/match_and_execute', { body }))
  const results = (answer['results'] as Json[] | undefined) ?? [] // of the schema of the answer
  const replies: Json[] = []
  let code: number = exitCodes.ok
  for (const result of results) {
    const execution = toObject(result['execution'])
    const id = textOrEmpty(execution['id'])
    const ack = toObject(toObject(result['actionalias'])['ack'])
    const said = ack['enabled'] === false ? '' : textOrEmpty(result['message'])
    if (session.form === 'human' && said !== '') await session.print(`${printable(said)}\n`)
    if (flags.async === true) {
      if (session.form === 'human') await session.print(followUpCommands(id))
      else replies.push(result)
      continue
    }
    try {
      await askAtInterrupt(session, id, () => waitForEnd(session, id))
    } catch (error) {
      noteStillRunning(session, id, error)
      throw error
    }
    const reply = recordIn(await session.client.call('GET', `/aliasexecution/${segment(id)}/reply`))
    replies.push(reply)
    const ended = exitCodeOf(recordStatusOf(reply))
    if (ended !== exitCodes.ok) code = ended
    if (session.form !== 'human') continue
    if (reply['enabled'] === false) session.note('The alias says that a chat shows no result.\n')
    else await session.print(`${printable(textOrEmpty(reply['message']))}\n`)
  }
  if (session.form !== 'human') await session.printMachine(replies)
  return code
}
