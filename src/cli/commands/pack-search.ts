/** `svc pack show` and `svc pack search`: packs that the indexes of the server have (contract 09, 9.3). */
import { CliCommand } from '../command.ts'
import { listIn, recordIn, textOrEmpty, toList, toObject } from '../connection/responses.ts'
import { exitCodes } from '../exit-codes.ts'
import { HttpFailure, NotFound } from '../failures.ts'
import { addCommonOptions, addWidthOption, splitAttributes, type WidthFlags } from '../options.ts'
import { printable } from '../output/print.ts'
import { printList, printRecord } from '../records.ts'
import { addAttributeOption, type AttributeFlags } from '../resources.ts'
import { withSession, type CommandContext, type Session } from '../session.ts'

const columns = ['ref', 'name', 'description', 'version', 'author']
const order = [...columns, 'keywords', 'repo_url']
const notes =
  'svc reads the indexes of the option content.index_url of the server. Indexes that cannot be read are named on standard error.'

export function createShowCommand(context: CommandContext): CliCommand {
  return addAttributeOption(addCommonOptions(new CliCommand('show')))
    .description('Show a pack that an index of the server has, installed or not.')
    .argument('<ref>', 'reference')
    .completions({ ref: [], '--attr': order })
    .notes(notes)
    .examples('svc pack show aws')
    .action((ref: string, flags: AttributeFlags) => withSession(context, flags, (session) => show(session, ref, flags)))
}

export function createSearchCommand(context: CommandContext): CliCommand {
  return addAttributeOption(addWidthOption(addCommonOptions(new CliCommand('search'))))
    .description('Search the indexes of the server for packs that can be installed by name.')
    .argument('[word...]', 'words that a pack must have; default: list every pack')
    .completions({ word: [], '--attr': order })
    .notes(notes)
    .examples('svc pack search aws', 'svc pack search monitoring -a ref repo_url')
    .action((words: string[], flags: AttributeFlags & WidthFlags) =>
      withSession(context, flags, (session) => search(session, words, flags)),
    )
}

async function show(session: Session, ref: string, { attr }: AttributeFlags): Promise<number> {
  const answer = await session.client.call('POST', '/packs/index/search', { body: { pack: ref } })
  if (Array.isArray(answer.body)) {
    await noteProblems(session)
    throw new NotFound('Pack', ref)
  }
  await printRecord(session, recordIn(answer), order, splitAttributes(attr))
  return exitCodes.ok
}

async function search(
  session: Session,
  words: readonly string[],
  { attr, width }: AttributeFlags & WidthFlags,
): Promise<number> {
  const answer = await session.client.call('POST', '/packs/index/search', { body: { query: words.join(' ') } })
  await printList(session, listIn(answer), {
    columns,
    attributes: splitAttributes(attr),
    widths: width,
    name: 'Pack',
    pluralName: 'Packs',
  })
  await noteProblems(session)
  return exitCodes.ok
}

/** What an index lacks may be in one that the server cannot read. */
async function noteProblems(session: Session): Promise<void> {
  try {
    const { indexes } = recordIn(await session.client.call('GET', '/packs/index/health', {}))
    const { count, status } = toObject(indexes)
    if (count === 0) session.note('The server has no index of packs. Set content.index_url in its configuration.\n')
    for (const index of toList(status)) {
      if (typeof index['error'] !== 'string') continue
      session.note(printable(`Index ${textOrEmpty(index['url'])}: ${textOrEmpty(index['message'])}`) + '\n')
    }
  } catch (error) {
    // Who may search need not be allowed to see the state of the indexes.
    if (!(error instanceof HttpFailure && error.status === 403)) throw error
  }
}
