/** `svc inquiry`: questions of executions to people (contract 08, 8.15; contract 09, 9.3). */
import { CliCommand } from '../command.ts'
import { recordIn, toObject } from '../connection/responses.ts'
import { exitCodes } from '../exit-codes.ts'
import { CliFailure } from '../failures.ts'
import { addCommonOptions, type CommonFlags } from '../options.ts'
import { printable, type Json } from '../output/print.ts'
import { withSecretInput } from '../input/prompt.ts'
import { callOn, getRecord, subjectOf } from '../records.ts'
import { createGetCommand, createListCommand, type CliResource } from '../resources.ts'
import { withSession, type CommandContext, type Session } from '../session.ts'
import { readJson } from '../../lib/json/index.ts'

const inquiry: CliResource = {
  name: 'Inquiry',
  pluralName: 'Inquiries',
  path: '/inquiries',
  columns: ['id', 'roles', 'users', 'route', 'ttl'],
  order: ['id', 'roles', 'users', 'route', 'ttl', 'schema'],
  isNewestFirst: true,
}

interface RespondFlags extends CommonFlags {
  response?: string
}

export function createInquiryCommand(context: CommandContext): CliCommand {
  const list = createListCommand(context, inquiry)
    .description('List the inquiries that wait for a response.')
    .examples('svc inquiry list')

  const get = createGetCommand(context, inquiry, '<id...>', 'ids')
    .description('Show inquiries that wait for a response.')
    .examples('svc inquiry get 6b02e6f49b672bb6c21844e4')

  const respond = addCommonOptions(new CliCommand('respond'))
    .description(
      'Respond to an inquiry. Without -r, svc prompts for each property of its schema, or reads one line of standard input per property.',
    )
    .argument('<id>', 'id')
    .option('-r, --response <json>', 'response as JSON; visible to other users of this machine in the process list')
    .examples(
      'svc inquiry respond 6b02e6f49b672bb6c21844e4',
      `svc inquiry respond 6b02e6f49b672bb6c21844e4 -r '{"continue": true}'`,
    )
    .action((id: string, flags: RespondFlags) => withSession(context, flags, (session) => answer(session, id, flags)))

  return new CliCommand('inquiry').addCommand(list).addCommand(get).addCommand(respond)
}

async function answer(session: Session, id: string, { response: given }: RespondFlags): Promise<number> {
  // Any part may be a secret: only the schema says which.
  session.client.maskNames(['response'])
  const response = given === undefined ? await askAll(session, id) : responseIn(given)
  const accepted = recordIn(await callOn(session, 'PUT', subjectOf(inquiry, id), { body: { id, response } }))
  if (session.form === 'human') await session.print(`Inquiry "${printable(id)}" is answered.\n`)
  else await session.printMachine(accepted)
  return exitCodes.ok
}

/** @throws CliFailure (2) */
function responseIn(text: string): Json {
  let value: unknown
  try {
    value = readJson(text)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new CliFailure(`The response is not valid JSON: ${why}`, exitCodes.usage)
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value }
  throw new CliFailure('The response must be a JSON object, such as {"continue": true}.', exitCodes.usage)
}

/** @throws NotFound, CliFailure, Interrupted */
async function askAll(session: Session, id: string): Promise<Json> {
  const schema = toObject((await getRecord(session, inquiry, id))['schema'])
  const isKnown = Object.keys(toObject(schema['properties'])).length > 0
  const { askObject } = await import('../input/questions.ts')
  return withSecretInput(session, async (input) =>
    isKnown ? askObject({ input, note: session.note }, schema, {}) : responseIn(await input.ask('Response (JSON)')),
  )
}
