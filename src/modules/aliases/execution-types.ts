/** Wire records of the executions that chat commands ask for (contract 02, 2.13). */
import { record, Type, type Static } from '../../lib/schema/index.ts'
import { executionExample, ExecutionRecord } from '../executions/index.ts'
import { aliasExample, AliasRecord, command } from './types.ts'

const MAX_ADDRESS_CHARS = 1_000

const caller = {
  command,
  user: Type.String({ maxLength: MAX_ADDRESS_CHARS, description: 'The chat user.' }),
  source_channel: Type.String({ maxLength: MAX_ADDRESS_CHARS, description: 'The channel of the command.' }),
  source_context: Type.Optional(Type.Unknown({ description: 'Of the chat system; in the notification as it is.' })),
  notification_channel: Type.Optional(
    Type.Nullable(Type.String({ maxLength: MAX_ADDRESS_CHARS, description: 'Older name of the route.' })),
  ),
  notification_route: Type.Optional(
    Type.Nullable(
      Type.String({
        maxLength: MAX_ADDRESS_CHARS,
        description: 'Route of the notification at the end, such as `chatops`.',
      }),
    ),
  ),
}

/** Body of `POST /aliasexecution`. */
export const AliasExecutionRequest = record(
  'AliasExecutionRequest',
  Type.Object(
    {
      name: Type.Optional(Type.Nullable(Type.String({ description: 'Name or reference of the alias. Required.' }))),
      format: Type.String({ description: 'One of its formats: the text that the command is compared with.' }),
      ...caller,
    },
    { additionalProperties: false },
  ),
  {
    example: {
      name: 'deploy',
      format: 'deploy {{ service }}',
      command: 'deploy web',
      user: 'ann',
      source_channel: 'ops',
      notification_route: 'chatops',
    },
  },
)
export type AliasExecutionRequest = Static<typeof AliasExecutionRequest>

/** Body of `POST /aliasexecution/match_and_execute`. */
export const MatchAndExecuteRequest = record(
  'AliasMatchAndExecuteRequest',
  Type.Object(caller, { additionalProperties: false }),
  { example: { command: 'deploy web', user: 'ann', source_channel: 'ops', notification_route: 'chatops' } },
)
export type MatchAndExecuteRequest = Static<typeof MatchAndExecuteRequest>

const aliasExecution = Type.Object({
  execution: ExecutionRecord,
  actionalias: AliasRecord,
  message: Type.Optional(Type.String({ description: '`ack.format` of the alias, rendered.' })),
  extra: Type.Optional(Type.Unknown({ description: '`ack.extra` of the alias, rendered.' })),
})

const aliasExecutionExample = {
  execution: executionExample,
  actionalias: aliasExample,
  message: 'Deploying web.',
}

export const AliasExecutionRecord = record('AliasExecution', aliasExecution, { example: aliasExecutionExample })
export type AliasExecutionRecord = Static<typeof AliasExecutionRecord>

export const AliasExecutions = record('AliasExecutions', Type.Object({ results: Type.Array(AliasExecutionRecord) }), {
  example: { results: [aliasExecutionExample] },
})

/** What a chat is told of an execution that has ended. */
export const ReplyRecord = record(
  'AliasExecutionReply',
  Type.Object({
    execution_id: Type.String(),
    status: Type.String(),
    enabled: Type.Boolean({ description: 'False: the alias wants no reply.' }),
    message: Type.String({ description: '`result.format` of the alias, rendered; without it, status and result.' }),
    extra: Type.Optional(Type.Unknown({ description: '`result.extra` of the alias, rendered.' })),
    user: Type.Nullable(Type.String({ description: 'The chat user; null: it was not started from a chat.' })),
    source_channel: Type.Nullable(Type.String()),
  }),
  {
    example: {
      execution_id: executionExample.id,
      status: 'succeeded',
      enabled: true,
      message: 'web runs version 12.',
      user: 'ann',
      source_channel: 'ops',
    },
  },
)
export type ReplyRecord = Static<typeof ReplyRecord>
