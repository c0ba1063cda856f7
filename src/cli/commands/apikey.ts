/** `svc apikey`: keys for programs (contract 01, 1.9; contract 09, 9.3). */
import { CliCommand } from '../command.ts'
import { isId } from '../../core/ids.ts'
import { parseExpiry, parseMetadata, parseScope, scopeText, type ApiKeyScopeInput } from '../input/api-key-options.ts'
import { recordIn, textOrEmpty, type ApiResponse } from '../connection/responses.ts'
import { exitCodes } from '../exit-codes.ts'
import { NotFound } from '../failures.ts'
import { addCommonOptions, addListOptions, addWidthOption, type CommonFlags, type WidthFlags } from '../options.ts'
import { printable, type Json } from '../output/print.ts'
import { callOn, createRecord, printDone, type Subject } from '../records.ts'
import { showList, showRecord, type AttributeFlags, type ListFlags, type CliResource } from '../resources.ts'
import { forEachSecret, subjectOfSecret } from '../input/secret-ids.ts'
import { withSession, type CommandContext, type Session } from '../session.ts'

const apiKey: CliResource = {
  name: 'API Key',
  pluralName: 'API Keys',
  path: '/apikeys',
  columns: ['id', 'user', 'enabled', 'expires_at', 'last_used_at', 'scope', 'metadata'],
  addColumns: (record) => ({ ...record, scope: scopeText(record['scopes']) }),
  order: [
    'id',
    'user',
    'key',
    'enabled',
    'expires_at',
    'scopes',
    'metadata',
    'created_at',
    'last_used_at',
    'uid',
    'key_hash',
  ],
}
const keyNote =
  'A key on the command line is visible to other users of this machine in the process list. Use an id, or - to read the key from standard input.'
const keyArgument = 'ids or keys, or - to read a key from standard input'

interface KeyListFlags extends ListFlags {
  user?: string
  detail?: boolean
  showSecrets?: boolean
}

interface CreateFlags extends AttributeFlags {
  user?: string
  metadata?: Record<string, unknown>
  onlyKey?: boolean
  expires?: string
  scope?: ApiKeyScopeInput[]
}

export function createApiKeyCommand(context: CommandContext): CliCommand {
  const list = addListOptions(addCommonOptions(new CliCommand('list')))
    .description('List API keys.')
    .option('-u, --user <user>', 'only API keys of this user')
    .option('-d, --detail', 'print every attribute')
    .option('--show-secrets', 'print the key hashes instead of masking them; administrators only')
    .examples('svc apikey list -n -1 -y --show-secrets > keys.yaml')
    .action((flags: KeyListFlags) =>
      withKeys(context, flags, (session) => {
        const query = { user: flags.user, show_secrets: flags.showSecrets }
        const attr = flags.attr ?? (flags.detail === true ? ['all'] : undefined)
        return showList(session, apiKey, query, attr === undefined ? flags : { ...flags, attr })
      }),
    )

  const get = addCommonOptions(new CliCommand('get'))
    .description('Show API keys.')
    .argument('<key-or-id...>', keyArgument)
    .option('-a, --attr <name...>', 'attributes to print')
    .notes(keyNote)
    .examples('svc apikey get 6000000000000000000000aa')
    .action((keys: string[], flags: AttributeFlags) =>
      withKeys(context, flags, (session) =>
        forEachKey(session, keys, async (key) =>
          showRecord(session, apiKey, recordIn(await callOn(session, 'GET', subjectOf(key))), flags),
        ),
      ),
    )

  const create = addCommonOptions(new CliCommand('create'))
    .description('Create an API key. The key is printed only once.')
    .option('-u, --user <user>', 'user of the key (default: yourself); another user needs a separate permission')
    .option('-m, --metadata <json>', 'metadata of the key, a JSON object', parseMetadata)
    .option('-k, --only-key', 'print only the key')
    .option(
      '--expires <time>',
      'expiry time such as 2030-01-31T12:00:00Z, or lifetime such as 45m, 12h, 30d, 8w; default: no expiry',
      (text) => parseExpiry(text),
    )
    .option(
      '--scope <permissions>',
      'limit the key to these permissions: permission types separated by commas, then optionally @ and the uid of a ' +
        'resource; repeatable',
      (text: string, before: ApiKeyScopeInput[] | undefined) => parseScope(text, before),
    )
    .option('-a, --attr <name...>', 'attributes to print')
    .notes(
      'Without --scope a key has all permissions of its user. With --scope it has only those that its user has too. "svc permission-type list" lists the permission types.',
    )
    .examples(
      'svc apikey create -k --expires 90d',
      `svc apikey create -m '{"used_by": "deploy"}' --expires 90d`,
      'svc apikey create -k --scope webhook_send@webhook:sample',
      'svc apikey create -k --scope action_execute,action_view@action:core:local --scope execution_list',
    )
    .action((flags: CreateFlags) => withKeys(context, flags, (session) => createKey(session, flags)))

  const remove = createChangeCommand(context, 'delete', async (session, key) => {
    await callOn(session, 'DELETE', subjectOf(key))
    await printDone(session, `${apiKey.name} ${isId(key) ? `"${key}" ` : ''}is deleted.`)
    return exitCodes.ok
  })
    .description('Delete API keys. They stop working at once.')
    .notes(keyNote)
    .examples('svc apikey delete 6000000000000000000000aa')

  const enable = createChangeCommand(context, 'enable', (session, key, flags) => setEnabled(session, key, true, flags))
    .description('Enable disabled API keys.')
    .notes(keyNote)
    .examples('svc apikey enable 6000000000000000000000aa')

  const disable = createChangeCommand(context, 'disable', (session, key, flags) =>
    setEnabled(session, key, false, flags),
  )
    .description('Disable API keys. They stop working until they are enabled.')
    .notes(keyNote)
    .examples('svc apikey disable 6000000000000000000000aa')

  const load = addWidthOption(addCommonOptions(new CliCommand('load')))
    .description('Load API keys from a file, such as an export of another server.')
    .argument('<file>', 'one object or a list, .json or .yaml')
    .notes(
      'Each entry needs `user` and `key_hash`. Optional are `metadata`, `enabled` (default: false), `expires_at`, `scopes` and `id`. An entry whose `id` exists on the server replaces that key. If any entry is invalid, such as one with a masked hash, svc sends nothing.',
    )
    .examples(
      'svc apikey list -n -1 -y --show-secrets > keys.yaml',
      'svc --url https://other.example.com apikey load keys.yaml',
    )
    .action((file: string, flags: CommonFlags & WidthFlags) =>
      withKeys(context, flags, (session) => loadKeys(session, file, flags.width)),
    )

  return new CliCommand('apikey')
    .addCommand(list)
    .addCommand(get)
    .addCommand(create)
    .addCommand(remove)
    .addCommand(enable)
    .addCommand(disable)
    .addCommand(load)
}

function createChangeCommand(
  context: CommandContext,
  name: string,
  work: (session: Session, key: string, flags: CommonFlags) => Promise<number>,
): CliCommand {
  return addCommonOptions(new CliCommand(name))
    .argument('<key-or-id...>', keyArgument)
    .action((keys: string[], flags: CommonFlags) =>
      withKeys(context, flags, (session) => forEachKey(session, keys, (key) => work(session, key, flags))),
    )
}

/** A session in which `--debug` masks keys and their hashes. */
function withKeys(
  context: CommandContext,
  flags: CommonFlags,
  work: (session: Session) => Promise<number>,
): Promise<void> {
  return withSession(context, flags, (session) => {
    session.client.maskNames(['key', 'key_hash', 'uid'])
    return work(session)
  })
}

const subjectOf = (key: string): Subject => subjectOfSecret(apiKey, key)

/** Runs the work for each word: an id, a key, or `-` to read a key from standard input. */
function forEachKey(
  session: Session,
  keys: readonly string[],
  work: (key: string) => Promise<number>,
): Promise<number> {
  return forEachSecret(session, keys, 'API key', work)
}

async function createKey(session: Session, flags: CreateFlags): Promise<number> {
  const { user, metadata, expires, scope } = flags
  const body = {
    ...(user === undefined ? {} : { user }),
    ...(metadata === undefined ? {} : { metadata }),
    ...(expires === undefined ? {} : { expires_at: expires }),
    ...(scope === undefined ? {} : { scopes: scope }),
  }
  const record = await createRecord(session, apiKey.path, body)
  if (flags.onlyKey === true) {
    await session.print(`${printable(textOrEmpty(record['key']))}\n`)
    return exitCodes.ok
  }
  await showRecord(session, apiKey, record, flags)
  if (session.form === 'human')
    session.note('Note: Save the key now. The server stores only its hash and cannot show it again.\n')
  return exitCodes.ok
}

async function setEnabled(session: Session, key: string, isEnabled: boolean, flags: CommonFlags): Promise<number> {
  // Sends only this attribute: writing back a whole record could undo concurrent changes.
  const changed = await callOn(session, 'PUT', subjectOf(key), { body: { enabled: isEnabled } })
  return showRecord(session, apiKey, recordIn(changed), flags)
}

async function loadKeys(session: Session, file: string, widths: number[] | undefined): Promise<number> {
  const { readApiKeyFile } = await import('../input/api-key-file.ts')
  const { loadEntries } = await import('../input/entry-file.ts')
  const entries = await readApiKeyFile(file)
  await loadEntries(session, file, entries, { ...apiKey, widths }, async ({ id, body }) =>
    recordIn(await putOrPost(session, id, body)),
  )
  return exitCodes.ok
}

async function putOrPost(session: Session, id: string | undefined, body: Json): Promise<ApiResponse> {
  if (id !== undefined) {
    try {
      return await callOn(session, 'PUT', subjectOf(id), { body: { ...body, id } })
    } catch (error) {
      if (!(error instanceof NotFound)) throw error
    }
  }
  return session.client.call('POST', apiKey.path, { body: id === undefined ? body : { ...body, id } })
}
