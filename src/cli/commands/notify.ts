/** `svc notify`: notifications, what came of them, and their destinations. */
import { CliCommand } from '../command.ts'
import { recordIn, textOrEmpty } from '../connection/responses.ts'
import { exitCodes } from '../exit-codes.ts'
import { names } from '../names.ts'
import { printable } from '../output/print.ts'
import { callOn, subjectOf } from '../records.ts'
import {
  createEachCommand,
  createGetCommand,
  createListCommand,
  type CliResource,
  type ListFlags,
} from '../resources.ts'
import type { CommandContext, Session } from '../session.ts'

const notification: CliResource = {
  name: 'Notification',
  pluralName: 'Notifications',
  path: '/notifications',
  columns: ['id', 'destination', 'title', 'status', 'attempts', 'created_at', 'error'],
  order: ['id', 'destination', 'condition', 'title', 'status', 'error', 'attempts', 'created_at', 'due_at', 'sent_at'],
  isNewestFirst: true,
}

const destination: CliResource = {
  name: 'Destination',
  pluralName: 'Destinations',
  path: '/notifications/destinations',
  columns: ['name', 'channel', 'hears', 'is_global', 'state', 'pending', 'last_error'],
  order: ['name', 'description', 'channel', 'pack', 'file', 'on', 'is_global', 'settings', 'state', 'last_error'],
  addColumns: ({ on, ...record }) => ({ ...record, on, hears: Array.isArray(on) ? on.join(', ') : '' }),
}

const statuses = ['pending', 'sending', 'sent', 'failed', 'suppressed', 'digested']

interface NotifyListFlags extends ListFlags {
  status?: string
  destination?: string
  rule?: string
  execution?: string
}

export function createNotifyCommand(context: CommandContext): CliCommand {
  const list = createListCommand(
    context,
    notification,
    ({ status, destination: name, rule, execution }: NotifyListFlags) => ({
      status,
      destination: name,
      rule,
      execution,
    }),
  )
    .description('List notifications, newest last.')
    .option('--status <status>', `only notifications in this status: ${statuses.join(', ')}`)
    .option('--destination <name>', 'only notifications to this destination')
    .option('--rule <ref>', 'only notifications of this rule')
    .option('--execution <id>', 'only notifications of this execution')
    .completions({
      '--status': statuses,
      '--destination': names.destination,
      '--rule': names.rule,
      '--execution': names.execution,
    })
    .examples('svc notify list --status failed', 'svc notify list -n 5 --destination slack')

  const get = createGetCommand(context, notification, '<id...>', 'ids')
    .description('Show notifications: their status, and why one was not sent.')
    .examples('svc notify get 6000000000000000000000aa')

  const replay = createEachCommand(context, 'replay', ['<id...>', 'ids'], replayOne)
    .description('Send notifications again, each with its id, so that a receiver can recognise it.')
    .examples('svc notify replay 6000000000000000000000aa')

  const test = createEachCommand(context, 'test', ['<name...>', 'names of destinations'], testOne)
    .description('Send a test message to destinations, and print what came of it.')
    .notes('The exit code is 1 when a message could not be sent.')
    .completions({ name: names.destination })
    .examples('svc notify test slack')

  const destinations = createListCommand(context, destination)
    .description('List destinations: what they hear of, and whether the last message reached them.')
    .notes('Files notifications/*.yaml in the base path and in packs define them; svcctl reload reads them again.')
    .examples('svc notify destinations')
    .name('destinations')

  return new CliCommand('notify')
    .addCommand(list)
    .addCommand(get)
    .addCommand(replay)
    .addCommand(test)
    .addCommand(destinations)
}

async function replayOne(session: Session, id: string): Promise<number> {
  const record = recordIn(await callOn(session, 'POST', { ...subjectOf(notification, id), part: '/replay' }))
  if (session.form !== 'human') await session.printMachine(record)
  else await session.print(`Notification "${printable(id)}" is sent again.\n`)
  return exitCodes.ok
}

async function testOne(session: Session, name: string): Promise<number> {
  const outcome = recordIn(await callOn(session, 'POST', { ...subjectOf(destination, name), part: '/test' }))
  const isSent = outcome['sent'] === true
  if (session.form !== 'human') await session.printMachine(outcome)
  else {
    const said = printable(textOrEmpty(outcome['message']))
    await session.print(
      isSent ? `Sent to "${printable(name)}": ${said}\n` : `Not sent to "${printable(name)}": ${said}\n`,
    )
  }
  return isSent ? exitCodes.ok : exitCodes.failed
}
