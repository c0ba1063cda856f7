/** `svc workflow inspect`: finds mistakes in definitions (contract 09, 9.3; contract 08, 8.13). */
import { readStrictYamlDocument } from '../../lib/text/index.ts'
import { CliCommand } from '../command.ts'
import { segment } from '../connection/client.ts'
import { textOrEmpty, toList, toObject } from '../connection/responses.ts'
import { exitCodes } from '../exit-codes.ts'
import { CliFailure, NotFound } from '../failures.ts'
import { readTextFile } from '../input/text-file.ts'
import { addCommonOptions, type CommonFlags } from '../options.ts'
import type { Json } from '../output/print.ts'
import { openFile, readFile } from '../output/raw-output.ts'
import { printList } from '../records.ts'
import { withSession, type CommandContext, type Session } from '../session.ts'

/** The limit of the server. */
export const MAX_DEFINITION_BYTES = 1_048_576

interface InspectFlags extends CommonFlags {
  file?: string
  action?: string
}

export function createWorkflowInspectCommand(context: CommandContext): CliCommand {
  return addCommonOptions(new CliCommand('inspect'))
    .description('Find the mistakes in the definition of a workflow. Nothing is run.')
    .argument('[file]', 'workflow definition, .yaml')
    .completions({ file: 'file' })
    .option('--file <file>', 'workflow definition, .yaml: as the argument')
    .option(
      '--action <ref>',
      'action on the server, whose definition is inspected; with a file: the action it belongs to',
    )
    .notes(
      'The server checks the definition: its keys, tasks, transitions and expressions, the variables in them, and whether actions exist and take the input. It warns of what is likely to be a mistake; with --action also of defaults without effect.',
      'The exit code is 0 without mistakes (warnings do not count), 1 with some, and 2 when the file or the action does not exist.',
    )
    .examples('svc workflow inspect deploy.yaml', 'svc workflow inspect --action examples.deploy')
    .action((file: string | undefined, flags: InspectFlags) =>
      withSession(context, flags, (session) => inspectDefinition(session, { ...flags, file: file ?? flags.file })),
    )
}

async function inspectDefinition(
  session: Session,
  { file, action }: { file?: string | undefined; action?: string | undefined },
): Promise<number> {
  if (file === undefined && action === undefined) throw new CliFailure('Give a file or --action.', exitCodes.usage)
  const text =
    file === undefined ? await readActionFile(session, action ?? '') : await readTextFile(file, MAX_DEFINITION_BYTES)
  const answer = await session.client.call('POST', '/workflows/inspect', {
    query: { action, hints: true },
    bytes: Buffer.from(text),
    headers: { 'Content-Type': 'text/plain; charset=utf-8' },
  })
  const entries = toList(answer.body).map(toObject)
  if (session.form !== 'human') await session.printMachine(entries)
  else if (entries.length === 0) await session.print('No errors found in workflow definition.\n')
  else await printEntries(session, entries, text)
  return entries.every(({ type }) => type === 'warning') ? exitCodes.ok : exitCodes.failed
}

/** The file that defines an action, from the server. @throws CliFailure NotFound */
export async function readActionFile(session: Session, ref: string): Promise<string> {
  const path = `/actions/views/entry_point/${segment(ref)}`
  const response = await openFile(session, path, (code, message) =>
    code === 'ENTRY_POINT_NOT_FOUND' ? new CliFailure(message, exitCodes.usage) : new NotFound('Action', ref),
  )
  return (await readFile(response)).toString()
}

const sentences = (message: string, hint: string): string =>
  hint === '' ? message : `${message}${message.endsWith('.') ? '' : '.'} ${hint}`

/** Prints entries of inspection with their lines in the text. */
export function printEntries(session: Session, entries: readonly Json[], text: string): Promise<void> {
  const columns = ['type', 'line', 'spec_path', 'message']
  return printList(session, rowsOf(entries, text), { columns, name: 'Problem', pluralName: 'Problems' })
}

/** @param name of the file */
export function warnOf(session: Session, entries: readonly Json[], text: string, name: string): void {
  for (const { line, message } of rowsOf(entries, text))
    session.warn(`${name}${line === undefined ? '' : `, line ${line}`}: ${message}`)
}

function rowsOf(entries: readonly Json[], text: string): (Json & { line: number | undefined; message: string })[] {
  const document = readStrictYamlDocument(text)
  const lineOf = (path: string): number | undefined =>
    'problem' in document ? undefined : document.lineOf(path.split(/[.[\]]+/).filter((name) => name !== ''))
  return entries.map((entry) => ({
    ...entry,
    line: lineOf(textOrEmpty(entry['spec_path'])),
    message: sentences(textOrEmpty(entry['message']), textOrEmpty(entry['hint'])),
  }))
}
