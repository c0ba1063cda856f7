/** What must not be printed of a rule that is sent to the server. */
import { segment } from './connection/client.ts'
import { recordIn, textOrEmpty, toObject } from './connection/responses.ts'
import { CliFailure } from './failures.ts'
import type { Json } from './output/print.ts'
import type { Session } from './session.ts'

/** Has `--debug` mask the parameters that the action and the trigger type of a rule declare secret. */
export async function maskSecretsOf(session: Session, rule: Json): Promise<void> {
  if (!session.settings.debug) return
  const action = textOrEmpty(toObject(rule['action'])['ref'])
  const type = textOrEmpty(toObject(rule['trigger'])['type'])
  const schemas = [
    await read(session, '/actions/views/parameters/', action, ({ parameters }) => parameters),
    await read(session, '/triggertypes/', type, (record) => toObject(record['parameters_schema'])['properties']),
  ]
  const { secretNames } = await import('./input/questions.ts')
  for (const properties of schemas) session.client.maskNames(secretNames({ properties }))
}

/** The schemas of parameters; empty where the server has nothing of this name. */
async function read(session: Session, path: string, ref: string, pick: (record: Json) => unknown): Promise<Json> {
  if (ref === '') return {}
  try {
    return toObject(pick(recordIn(await session.client.call('GET', `${path}${segment(ref)}`))))
  } catch (error) {
    if (error instanceof CliFailure) return {}
    throw error
  }
}
