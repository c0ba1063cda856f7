/** `svc key`: the key-value pairs of the datastore (contract 05, 5.11; contract 09, 9.3). */
import { InvalidArgumentError } from 'commander'
import { CliCommand } from '../command.ts'
import type { Query } from '../connection/client.ts'
import { recordIn, textOrEmpty } from '../connection/responses.ts'
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
import { progressText } from '../output/progress.ts'
import { callOn, listRecords, printDone, subjectOf } from '../records.ts'
import {
  addAttributeOption,
  createEachCommand,
  showList,
  showRecord,
  type AttributeFlags,
  type ListFlags,
  type Operand,
  type CliResource,
} from '../resources.ts'
import { withSession, type CommandContext, type Session } from '../session.ts'

const pair: CliResource = {
  name: 'Key Value Pair',
  pluralName: 'Key Value Pairs',
  path: '/keys',
  columns: ['name', 'value', 'secret', 'encrypted', 'scope', 'user', 'expire_timestamp'],
  order: ['name', 'value', 'secret', 'encrypted', 'scope', 'user', 'expire_timestamp', 'description', 'id', 'uid'],
}
const names: Operand = ['<name...>', 'names']
const valueNote =
  'A value on the command line is visible to other users of this machine in the process list. Without one, svc prompts for ' +
  'it, or reads the next line of standard input.'

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
    .option('--prefix <text>', 'only keys whose names start with this text')
    .option('-d, --decrypt', 'print secrets decrypted')
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
    .option('-d, --decrypt', 'print secrets decrypted')
    .examples('svc key get web.url')

  const set = addAttributeOption(addPlaceOptions(addCommonOptions(new CliCommand('set')), 'system'))
    .description('Set the value of a key.')
    .argument('<name>', 'name')
    .argument('[value]', 'value')
    .option('-l, --ttl <seconds>', 'lifetime in seconds; default: no expiry', parseSeconds)
    .option('-e, --encrypt', 'store the value as a secret: encrypted, and shown only with -d')
    .option('--encrypted', 'the value is already encrypted, as printed by key list')
    .notes(
      valueNote,
      'In templates, write `{{ svckv.system.web.url }}`; for a secret, `{{ svckv.system.web.password | decrypt_kv }}`.',
    )
    .examples('svc key set web.url https://example.com', 'svc key set -e web.password')
    .action((name: string, value: string | undefined, flags: SetFlags) =>
      withPairs(context, flags, (session) => setPair(session, name, value, flags)),
    )

  const remove = addPlaceOptions(
    createEachCommand(context, 'delete', names, async (session, name, flags: PlaceFlags) => {
      await callOn(session, 'DELETE', subjectOf(pair, name), { query: placeOf(flags) })
      await printDeleted(session, name)
      return exitCodes.ok
    }),
    'system',
  )
    .description('Delete key-value pairs.')
    .examples('svc key delete web.url')

  const removeByPrefix = addPlaceOptions(addCommonOptions(new CliCommand('delete_by_prefix')), 'system')
    .description('Delete all key-value pairs of one scope whose names start with a prefix.')
    .requiredOption('-p, --prefix <text>', 'prefix of the names', parsePrefix)
    .examples('svc key delete_by_prefix -p web.')
    .action((flags: PlaceFlags & { prefix: string }) =>
      withPairs(context, flags, (session) => deleteByPrefix(session, flags)),
    )

  const load = addWidthOption(addCommonOptions(new CliCommand('load')))
    .description('Set key-value pairs from a file.')
    .argument('<file>', 'one object or a list, .json or .yaml')
    .option('-c, --convert', 'convert values that are not text to JSON')
    .notes(
      'Each entry needs name and value. Optional are scope, user, secret, encrypted, ttl, description and expire_timestamp. If any entry is invalid, svc sends nothing. Expired entries are skipped.',
      'Encrypted values load only on the server that encrypted them, and only under the same name. For another server, export with -d; the file then holds the secrets in plain text.',
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
    .completions({ '--scope': ['system', 'user', ...(defaultScope === 'all' ? ['all'] : [])] })
    .option(
      '-s, --scope <scope>',
      `scope: system or user${defaultScope === 'all' ? ' or all' : ''} (default: ${defaultScope})`,
    )
    .option('-u, --user <user>', 'owner in the scope user; another user needs an administrator')
}

function parsePrefix(text: string): string {
  if (text === '') throw new InvalidArgumentError('An empty prefix would delete everything.')
  return text
}

/** A session in which `--debug` masks all values: each may be a secret. */
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

async function printDeleted(session: Session, name: string): Promise<void> {
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
    progress.update(`Deleting: ${progressText(index, records.length)}`)
    const name = textOrEmpty(given)
    const place: PlaceFlags = {
      scope: textOrEmpty(scope),
      ...(typeof user === 'string' && user !== '' ? { user } : {}),
    }
    try {
      await callOn(session, 'DELETE', subjectOf(pair, name), { query: placeOf(place) })
    } catch (error) {
      // Another client has deleted it.
      if (error instanceof NotFound) continue
      throw error
    }
    deleted.push(name)
    if (session.form === 'human') await printDeleted(session, name)
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
  if (count > 0) session.note(`Note: Skipped ${count} expired ${count === 1 ? 'entry' : 'entries'}.\n`)
  await loadEntries(session, file, current, { ...pair, widths: flags.width }, ({ name, body }) =>
    put(session, name, body),
  )
  return exitCodes.ok
}
