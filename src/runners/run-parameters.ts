/** The parameters that all runners that start processes share (contract 03, 3.6). */
import { nearestNumber } from '../lib/json/index.ts'
import { isObject, type ParameterSchema } from '../lib/schema/index.ts'
import { backgroundModes, type BackgroundChoice, type BackgroundMode } from './process/run-command.ts'

/** Limit of parameter `env`. The system accepts a few megabytes, but refuses only after all preparation. */
const MAX_VARIABLES = 10_000

const MIN_GRACE_SECONDS = 0.1
const MAX_GRACE_SECONDS = 86_400

/** Its name is not `background`, which actions of existing packs have as a parameter of their own. */
export const backgroundParameters: Record<'background_jobs' | 'background_grace_seconds', ParameterSchema> = {
  background_jobs: {
    type: 'string',
    enum: [...backgroundModes],
    description:
      'Processes that outlive the first one: wait (until they write nothing for a while), detach (leave them running) or ' +
      'kill. Default: actionrunner.background.',
  },
  background_grace_seconds: {
    type: 'number',
    minimum: MIN_GRACE_SECONDS,
    maximum: MAX_GRACE_SECONDS,
    description:
      'For wait: seconds without output after which the execution ends. Default: actionrunner.background_grace_seconds.',
  },
}

export interface RunParameters {
  /** 0 disables the limit. */
  timeoutSeconds: number
  env: Record<string, unknown> | undefined
  background: BackgroundChoice
}

/** `problem` is a sentence for the result of the execution. */
export function readRunParameters(
  parameters: Readonly<Record<string, unknown>>,
  defaults: Pick<RunParameters, 'timeoutSeconds' | 'background'>,
): RunParameters | { problem: string } {
  const timeoutSeconds = nearestNumber(parameters['timeout']) ?? defaults.timeoutSeconds
  if (typeof timeoutSeconds !== 'number' || !(timeoutSeconds >= 0)) {
    return { problem: 'The parameter "timeout" must be 0 (no limit) or a positive number of seconds.' }
  }
  const env = parameters['env'] ?? undefined
  if (env !== undefined && !isObject(env)) return { problem: 'The parameter "env" must be an object.' }
  if (env !== undefined && Object.keys(env).length > MAX_VARIABLES) {
    return { problem: `The parameter "env" has more than ${MAX_VARIABLES} variables.` }
  }
  const mode = parameters['background_jobs'] ?? defaults.background.mode
  if (!isMode(mode)) return { problem: 'The parameter "background_jobs" must be wait, detach or kill.' }
  const graceSeconds = nearestNumber(parameters['background_grace_seconds']) ?? defaults.background.graceSeconds
  if (typeof graceSeconds !== 'number' || !(graceSeconds >= MIN_GRACE_SECONDS && graceSeconds <= MAX_GRACE_SECONDS)) {
    const range = `${MIN_GRACE_SECONDS} to ${MAX_GRACE_SECONDS}`
    return { problem: `The parameter "background_grace_seconds" must be a number of seconds from ${range}.` }
  }
  return { timeoutSeconds, env, background: { mode, graceSeconds } }
}

function isMode(value: unknown): value is BackgroundMode {
  return backgroundModes.some((mode) => mode === value)
}
