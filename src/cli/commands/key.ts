/** `svc key`: the key-value pairs of the datastore (contract 05, 5.11; contract 09, 9.3). */
import { InvalidArgumentError } from 'commander'
import { CliCommand } from '../command.ts'
import type { Query } from '../connection/client.ts'
import { recordIn, textOf } from '../connection/answers.ts'
import { exitCodes } from '../exit-codes.ts'
import { CliFailure, NotFound } from '../failures.ts'
import {
  addCommonOptions,
  addListOptions,
  addWidthOption,
  parseSeconds,
  type CommonFlags,
  type WidthFlags,
} from '../options.ts'
import { printable, type Json } from '../output/print.ts'
import { withSecretInput } from '../input/prompt.ts'
import { createGenerateCommand } from './key-file.ts'
import { countOf } from '../output/progress.ts'
import { callOn, listRecords, printDone, subjectOf } from '../records.ts'
import {
  addAttributeOption,
  createEachCommand,
  showList,
  showRecord,
  type AttributeFlags,
  type ListFlags,
  type Operand,
  type Resource,
} from '../resources.ts'
import { withSession, type CommandContext, type Session } from '../session.ts'

const pair: Resource = {
  name: 'Key Value Pair',
  pluralName: 'Key Value Pairs',
  path: '/keys',
  columns: ['name', 'value', 'secret', 'encrypted', 'scope', 'user', 'expire_timestamp'],
  order: ['name', 'value', 'secret', 'encrypted', 'scope', 'user', 'expire_timestamp', 'description', 'id', 'uid'],
}
const names: Operand = ['<name...>', 'names']
const valueNote =
  'A value on the command line is seen by other users of this machine in the list of processes. Left out, it is asked for, ' +
  'or is the next line of standard input.'

interface PlaceFlags extends CommonFlags {
  scope?: string
  user?: string
}

interface PairListFlags extends ListFlags, PlaceFlags {
  prefix?: string
  decrypt?: boolean
}

interface GetFlags extends AttributeFlags, PlaceFlags {
  decrypt?: boolean
}

interface SetFlags extends AttributeFlags, PlaceFlags {
  ttl?: number
  encrypt?: boolean
  encrypted?: boolean
}

interface LoadFlags extends CommonFlags, WidthFlags {
  convert?: boolean
}

export function createKeyCommand(context: CommandContext): CliCommand {
  const list = addPlaceOptions(addListOptions(addCommonOptions(new CliCommand('list'))), 'all')
    .description('List key-value pairs.')
    .option('--prefix <text>', 'only those whose names begin with it')
    .option('-d, --decrypt', 'secrets as plain text')
    .examples('svc key list --prefix web.', 'svc key list -n -1 -j > keys.json')
    .action((flags: PairListFlags) =>
      withPairs(context, flags, (session) => {
        const { prefix, decrypt, user, scope = user === undefined ? 'all' : undefined } = flags
        return showList(session, pair, { prefix, scope, user, decrypt }, flags)
      }),
    )

  const work = async (session: Session, name: string, flags: GetFlags): Promise<number> => {
    session.client.maskNames(['value'])
    const query = { ...placeOf(flags), decrypt: flags.decrypt }
    return showRecord(session, pair, recordIn(await callOn(session, 'GET', subjectOf(pair, name), { query })), flags)
  }
  const get = addAttributeOption(addPlaceOptions(createEachCommand(context, 'get', names, work), 'system'))
    .description('Show key-value pairs.')
    .option('-d, --decrypt', 'secrets as plain text')
    .examples('svc key get web.url')

  const set = addAttributeOption(addPlaceOptions(addCommonOptions(new CliCommand('set')), 'system'))
    .description('Give a key its value.')
    .argument('<name>', 'name')
    .argument('[value]', 'value')
    .option('-l, --ttl <seconds>', 'keep it for so long; default: for good', parseSeconds)
    .option('-e, --encrypt', 'it is a secret: the server keeps it encrypted, and shows it only with -d')
    .option('--encrypted', 'the value is encrypted already, as another list has shown it')
    .notes(
      valueNote,
      'Templates have it as `{{ svckv.system.web.url }}`, a secret as `{{ svckv.system.web.password | decrypt_kv }}`.',
    )
    .examples('svc key set web.url https://example.com', 'svc key set -e web.password')
    .action((name: string, value: string | undefined, flags: SetFlags) =>
      withPairs(context, flags, (session) => setPair(session, name, value, flags)),
    )

  const remove = addPlaceOptions(
    createEachCommand(context, 'delete', names, async (session, name, flags: PlaceFlags) => {
      await callOn(session, 'DELETE', subjectOf(pair, name), { query: placeOf(flags) })
      await sayDeleted(session, name)
      return exitCodes.ok
    }),
    'system',
  )
    .description('Delete key-value pairs.')
    .examples('svc key delete web.url')

  const removeByPrefix = addPlaceOptions(addCommonOptions(new CliCommand('delete_by_prefix')), 'system')
    .description('Delete all key-value pairs of one scope whose names begin alike.')
    .requiredOption('-p, --prefix <text>', 'what their names begin with', parsePrefix)
    .examples('svc key delete_by_prefix -p web.')
    .action((flags: PlaceFlags & { prefix: string }) =>
      withPairs(context, flags, (session) => deleteByPrefix(session, flags)),
    )

  const load = addWidthOption(addCommonOptions(new CliCommand('load')))
    .description('Set key-value pairs from a file.')
    .argument('<file>', 'one object or a list, in .json or .yaml')
    .option('-c, --convert', 'values that are no text become their JSON')
    .notes(
      'Each entry has name and value, and may have scope, user, secret, encrypted, ttl, description and expire_timestamp. A file in which something is wrong is refused before anything is sent; entries that have expired are left out.',
      'Encrypted values are taken back by the server that has encrypted them, under the same name. For another one, list them with -d: then the file holds the secrets themselves.',
    )
    .examples('svc key list --scope=all -n -1 -j > keys.json', 'svc key load keys.json')
    .action((file: string, flags: LoadFlags) => withPairs(context, flags, (session) => loadPairs(session, file, flags)))

  return new CliCommand('key')
    .addCommand(list)
    .addCommand(get)
    .addCommand(set)
    .addCommand(remove)
    .addCommand(removeByPrefix)
    .addCommand(load)
    .addCommand(createGenerateCommand(context))
}

function addPlaceOptions(command: CliCommand, defaultScope: string): CliCommand {
  return command
    .words({ '--scope': ['system', 'user', ...(defaultScope === 'all' ? ['all'] : [])] })
    .option(
      '-s, --scope <scope>',
      `system or user${defaultScope === 'all' ? ' or all' : ''} (default: ${defaultScope})`,
    )
    .option('-u, --user <user>', 'of this user, in the scope user; needs an administrator')
}

function parsePrefix(text: string): string {
  if (text === '') throw new InvalidArgumentError('An empty one would delete everything.')
  return text
}

/** A session in which `--debug` prints no value: each may be a secret. */
function withPairs(
  context: CommandContext,
  flags: CommonFlags,
  work: (session: Session) => Promise<number>,
): Promise<void> {
  return withSession(context, flags, (session) => {
    session.client.maskNames(['value'])
    return work(session)
  })
}

/** The query for a pair: a user without a scope means the scope `user`, since no other scope has users. */
function placeOf({ scope, user }: PlaceFlags): { scope?: string; user?: string } {
  const where = scope ?? (user === undefined ? undefined : 'user')
  return { ...(where === undefined ? {} : { scope: where }), ...(user === undefined ? {} : { user }) }
}

async function sayDeleted(session: Session, name: string): Promise<void> {
  await printDone(session, `${pair.name} "${name}" is deleted.`)
}

async function setPair(session: Session, name: string, given: string | undefined, flags: SetFlags): Promise<number> {
  const { ttl } = flags
  const value = given ?? (await withSecretInput(session, (input) => input.ask(`Value of ${printable(name)}`)))
  const body = {
    name,
    value,
    ...placeOf(flags),
    ...(flags.encrypt === true ? { secret: true } : {}),
    ...(flags.encrypted === true ? { secret: true, encrypted: true } : {}),
    ...(ttl === undefined ? {} : { ttl }),
  }
  return showRecord(session, pair, await put(session, name, body), flags)
}

async function put(session: Session, name: string, body: Json): Promise<Json> {
  if (name === '') throw new CliFailure('A key needs a name.', exitCodes.usage)
  return recordIn(await callOn(session, 'PUT', subjectOf(pair, name), { body }))
}

async function deleteByPrefix(session: Session, flags: PlaceFlags & { prefix: string }): Promise<number> {
  const query: Query = { ...placeOf(flags), prefix: flags.prefix }
  const { records } = await listRecords(session, pair.path, query, -1)
  const deleted: string[] = []
  const progress = session.progress('Deleting')
  for (const [index, { name: given, scope, user }] of records.entries()) {
    progress.update(`Deleting: ${countOf(index, records.length)}`)
    const name = textOf(given)
    const place: PlaceFlags = { scope: textOf(scope), ...(typeof user === 'string' && user !== '' ? { user } : {}) }
    try {
      await callOn(session, 'DELETE', subjectOf(pair, name), { query: placeOf(place) })
    } catch (error) {
      // Somebody else was faster.
      if (error instanceof NotFound) continue
      throw error
    }
    deleted.push(name)
    if (session.form === 'human') await sayDeleted(session, name)
  }
  progress.stop()
  if (session.form !== 'human') await session.printMachine(deleted)
  else if (deleted.length === 0) await session.print('No matching items found\n')
  return exitCodes.ok
}

async function loadPairs(session: Session, file: string, flags: LoadFlags): Promise<number> {
  const { readPairFile } = await import('../input/key-value-file.ts')
  const { loadEntries } = await import('../input/entry-file.ts')
  const entries = await readPairFile(file, flags.convert === true)
  const current = entries.filter(({ isExpired }) => !isExpired)
  const count = entries.length - current.length
  if (count > 0) session.note(`Note: ${count === 1 ? '1 entry has' : `${count} entries have`} expired; left out.\n`)
  await loadEntries(session, file, current, { ...pair, widths: flags.width }, ({ name, body }) =>
    put(session, name, body),
  )
  return exitCodes.ok
}
