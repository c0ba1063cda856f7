/** Bodies of requests for executions (contract 03, 3.1). */
import { record, Type, type Static } from '../../../lib/schema/index.ts'

const MAX_DELAY_MS = 31_536_000_000
export const MAX_TAG_LENGTH = 1024
const MAX_KEPT_PARAMETERS = 1000

const parameters = Type.Optional(
  Type.Unsafe<Record<string, unknown>>({
    type: 'object',
    additionalProperties: true,
    // Before their names are looked at: an action has fewer.
    maxProperties: MAX_KEPT_PARAMETERS,
    description: 'Values of the parameters of the action.',
    propertyNames: { pattern: '^\\w+$' },
  }),
)
const user = Type.Optional(
  Type.Nullable(Type.String({ minLength: 1, description: 'Acting user; null or absent: the caller.' })),
)
const delay = Type.Optional(
  Type.Nullable(
    Type.Integer({
      minimum: 0,
      maximum: MAX_DELAY_MS,
      description: 'Milliseconds to wait before the execution is scheduled.',
    }),
  ),
)
const MAX_ROUTES = 100
const MAX_TASKS = 1000
const texts = Type.Optional(Type.Array(Type.String(), { maxItems: MAX_ROUTES }))

const notifySection = Type.Optional(
  Type.Object(
    {
      message: Type.Optional(Type.String()),
      data: Type.Optional(Type.FreeForm()),
      routes: texts,
      channels: texts,
    },
    { additionalProperties: false },
  ),
)

const context = Type.Unsafe<Record<string, unknown>>(
  Type.Object(
    {
      trace_context: Type.Optional(
        Type.Object(
          {
            id_: Type.Optional(Type.String()),
            trace_tag: Type.Optional(Type.String({ maxLength: MAX_TAG_LENGTH })),
          },
          { additionalProperties: false },
        ),
      ),
      parent: Type.Optional(
        Type.Object({ execution_id: Type.Optional(Type.String()), user: Type.Optional(Type.String()) }),
      ),
    },
    {
      additionalProperties: true,
      description: 'Merged into the context; `trace_context` joins (`id_`) or starts (`trace_tag`) a trace.',
    },
  ),
)

/** Body of `POST /executions`. Other attributes are ignored, because clients of several versions send them. */
export const ExecutionRequest = record(
  'ExecutionRequest',
  Type.Object({
    action: Type.String({ description: 'Reference of the action, `<pack>.<name>`.' }),
    parameters,
    user,
    context: Type.Optional(context),
    notify: Type.Optional(
      Type.Unsafe<Record<string, unknown>>(
        Type.Object(
          { 'on-complete': notifySection, 'on-success': notifySection, 'on-failure': notifySection },
          { additionalProperties: false },
        ),
      ),
    ),
    delay,
    callback: Type.Optional(Type.FreeForm()),
  }),
  { example: { action: 'core.local', parameters: { cmd: 'date' } } },
)
export type ExecutionRequest = Static<typeof ExecutionRequest>

/** Body of `POST /executions/<id>/re_run`. */
export const RerunRequest = record(
  'RerunRequest',
  Type.Object({
    parameters,
    keep: Type.Optional(
      Type.Array(Type.String(), {
        maxItems: MAX_KEPT_PARAMETERS,
        description: 'With `no_merge`: names of original parameters that stay as they were, secrets included.',
      }),
    ),
    user,
    delay,
    tasks: Type.Optional(
      Type.Array(Type.String(), { maxItems: MAX_TASKS, description: 'Workflows only: names of tasks to run again.' }),
    ),
    reset: Type.Optional(
      Type.Array(Type.String(), {
        maxItems: MAX_TASKS,
        description: 'Workflows only: those of `tasks` that repeat all their items, not just those without success.',
      }),
    ),
  }),
  { example: { parameters: { cmd: 'uptime' } } },
)
export type RerunRequest = Static<typeof RerunRequest>
