/** Running rules: what a rule says about the runs of its action (`timeout`, `retry`, `overlap`, `delay`). */
import { durationSchema, formatDuration, readDuration } from '../../lib/calendar/index.ts'
import { Type, type SchemaProblem, type Static } from '../../lib/schema/index.ts'
import type { RetryRules, RunningRules } from '../executions/types.ts'

const DAY = 86_400
const MAX_ATTEMPTS = 100
const MAX_DELAY_SECONDS = DAY
const MAX_TIMEOUT_SECONDS = 7 * DAY
/** Of delays that grow, where the rule does not say. */
const DEFAULT_MAX_DELAY_SECONDS = 3600

const duration = (about: string) =>
  Type.Unsafe<number | string>({
    ...durationSchema,
    description: `${about} Seconds, or text such as \`90s\` or \`1h30m\`.`,
  })

const retry = Type.Object(
  {
    attempts: Type.Integer({
      minimum: 1,
      maximum: MAX_ATTEMPTS,
      description: 'Runs altogether, the first one included.',
    }),
    delay: Type.Optional(duration('From the end of a run to the next. Default: 0. At most a day.')),
    backoff: Type.Optional(
      Type.Enum(['exponential', 'fixed'], {
        type: 'string',
        description: '`exponential`: each further delay is twice the one before. Default: `fixed`.',
      }),
    ),
    max_delay: Type.Optional(duration('Longest delay of `exponential`. Default: 1h. At most a day.')),
    jitter: Type.Optional(
      Type.Boolean({ description: 'Leaves out a random part of each delay, at most half of it. Default: false.' }),
    ),
    on: Type.Optional(
      Type.Array(Type.Enum(['failed', 'timeout'], { type: 'string' }), {
        minItems: 1,
        maxItems: 2,
        description: 'Statuses after which the action is run again. Default: both.',
      }),
    ),
  },
  {
    additionalProperties: false,
    description:
      'Runs the action again when it fails. Policies of the action with the type `action.retry` do not count then.',
  },
)

const overlaps = ['allow', 'skip', 'queue', 'replace'] as const

const overlapDescription =
  'What happens when the rule matches while an execution of it has not ended. `allow`, the default: both run; `skip`: the enforcement says so, and nothing runs; `queue`: it waits, in order; `replace`: the earlier one is canceled.'

/** Of the `action` in a record. */
export const runningProperties = {
  timeout: Type.Optional(duration('Time that each run may take. At most 7d.')),
  retry: Type.Optional(retry),
  overlap: Type.Optional(Type.Enum(overlaps, { type: 'string', description: overlapDescription })),
  delay: Type.Optional(duration('From the event to the first run. At most a day.')),
}

const orNull = <T extends object>(schema: T): T & { type: string[] } => ({
  ...schema,
  type: [...('type' in schema ? [schema.type].flat().map(String) : []), 'null'],
})

/** Of the `action` in a definition; null: not given. */
export const givenRunningProperties = {
  timeout: Type.Optional(Type.Unsafe<number | string | null>(orNull(runningProperties.timeout))),
  retry: Type.Optional(Type.Nullable(retry)),
  overlap: Type.Optional(
    Type.Unsafe<(typeof overlaps)[number] | null>({
      type: ['string', 'null'],
      enum: [...overlaps, null],
      description: overlapDescription,
    }),
  ),
  delay: Type.Optional(Type.Unsafe<number | string | null>(orNull(runningProperties.delay))),
}

/** As the author has written it. */
export interface Running {
  timeout?: number | string
  retry?: Static<typeof retry>
  overlap?: (typeof overlaps)[number]
  delay?: number | string
}

type Given = { readonly [name in keyof Running]?: Running[name] | null }

/** The running rules alone, without those that are not given. */
export function runningOf({ timeout, retry: again, overlap, delay }: Given): Running {
  return {
    ...(timeout === undefined || timeout === null ? {} : { timeout }),
    ...(again === undefined || again === null ? {} : { retry: again }),
    ...(overlap === undefined || overlap === null ? {} : { overlap }),
    ...(delay === undefined || delay === null ? {} : { delay }),
  }
}

/** What their schema cannot say. @param given valid against the schema @returns path from the root of the rule */
export function problemOfRunning({ timeout, retry: again, delay }: Running): SchemaProblem | undefined {
  const problem = (name: string, text: string): SchemaProblem => ({
    path: ['action', ...name.split('.')],
    message: `action.${name}: ${text}`,
  })
  const problemOf = (name: string, given: number | string | undefined, most: number): SchemaProblem | undefined => {
    if (given === undefined) return undefined
    const read = readDuration(given)
    if ('problem' in read) return problem(name, `${read.problem}.`)
    if (read.seconds <= most) return undefined
    return problem(
      name,
      `${formatDuration(read.seconds)} is more than ${formatDuration(most)}, the longest that is possible.`,
    )
  }
  const found =
    problemOf('timeout', timeout, MAX_TIMEOUT_SECONDS) ??
    problemOf('delay', delay, MAX_DELAY_SECONDS) ??
    problemOf('retry.delay', again?.delay, MAX_DELAY_SECONDS) ??
    problemOf('retry.max_delay', again?.max_delay, MAX_DELAY_SECONDS)
  if (found !== undefined) return found
  if (timeout !== undefined && secondsOf(timeout) === 0) return problem('timeout', 'a run needs more time than 0 s.')
  if (again === undefined) return undefined
  const { backoff = 'fixed', max_delay: longest } = again
  const first = secondsOf(again.delay ?? 0)
  if (backoff === 'fixed') {
    return longest === undefined
      ? undefined
      : problem(
          'retry.max_delay',
          'only delays of "backoff: exponential" grow. Remove it, or add "backoff: exponential".',
        )
  }
  if (first === 0)
    return problem('retry.delay', 'delays of "backoff: exponential" grow from it: it must be more than 0.')
  return longest !== undefined && secondsOf(longest) < first
    ? problem('retry.max_delay', 'it is shorter than retry.delay.')
    : undefined
}

/** The running rules of a rule, as the engine needs them; undefined: it has none. Times in seconds. */
export interface CompiledRunning {
  readonly timeout?: number
  readonly delay?: number
  /** Of each execution; absent: nothing to keep with it. */
  readonly rules?: RunningRules
}

export function compileRunning(given: Running): CompiledRunning | undefined {
  const { timeout, retry: again, overlap = 'allow', delay } = given
  const rules: RunningRules = {
    ...(again === undefined ? {} : { retry: retryOf(again) }),
    ...(overlap === 'allow' ? {} : { overlap }),
  }
  const compiled = {
    ...(timeout === undefined ? {} : { timeout: secondsOf(timeout) }),
    ...(delay === undefined ? {} : { delay: secondsOf(delay) }),
    ...(Object.keys(rules).length === 0 ? {} : { rules }),
  }
  return Object.keys(compiled).length === 0 ? undefined : compiled
}

function retryOf({
  attempts,
  delay = 0,
  backoff = 'fixed',
  max_delay,
  jitter = false,
  on,
}: NonNullable<Running['retry']>): RetryRules {
  const first = secondsOf(delay)
  const longest = max_delay === undefined ? Math.max(first, DEFAULT_MAX_DELAY_SECONDS) : secondsOf(max_delay)
  return {
    attempts,
    delay: first,
    backoff,
    max_delay: backoff === 'fixed' ? first : longest,
    jitter,
    on: on ?? ['failed', 'timeout'],
  }
}

/** Checked before it was stored. */
function secondsOf(given: number | string): number {
  const read = readDuration(given)
  return 'seconds' in read ? read.seconds : 0
}
