/** Turns the action's parameters into script arguments (contract 03, 3.7, "Script arguments"). */
import { compileSecrets } from '../lib/secrets/index.ts'
import type { RunContext } from './runner.ts'
import { writeJson } from '../lib/json/index.ts'

export interface ScriptArguments {
  /** Named ones in declaration order, then positional ones, ascending; not quoted. */
  arguments: string[]
  /**
   * Variables `SVC_ACTION_PARAM_<name>` with the secret parameters. Other accounts of the host can see the arguments of
   * a process, but not its environment. Callers must keep these variables out of command lines too.
   */
  environment: Record<string, string>
  /** Whether any argument contains a secret. */
  isSecret: boolean
}

/** The runner parameter that lets an author keep secrets out of a script's arguments. */
export const secretArgumentsParameter = {
  secret_arguments: {
    type: 'boolean',
    default: true,
    description:
      'Pass secret parameters as arguments of the script. Arguments of sh and bash scripts are not visible to other accounts of the host; those of other programs are. The environment always holds them as SVC_ACTION_PARAM_<name>.',
  },
} as const

const DEFAULT_OPERATOR = '--'

/** Reads the runner parameters `kwarg_op` and `secret_arguments`. */
export function scriptArguments({
  runnerParameters,
  actionParameters,
  parameterSchemas,
  containsSecret,
}: Pick<RunContext, 'runnerParameters' | 'actionParameters' | 'parameterSchemas' | 'containsSecret'>): ScriptArguments {
  const given = runnerParameters['kwarg_op']
  const operator = typeof given === 'string' ? given : DEFAULT_OPERATOR
  const hasSecretArguments = runnerParameters['secret_arguments'] !== false
  const named: string[] = []
  const positional: { position: number; text: string }[] = []
  const environment: Record<string, string> = {}

  for (const [name, value] of Object.entries(actionParameters)) {
    const schema = parameterSchemas[name] ?? {}
    const isSecret = compileSecrets(schema) !== undefined
    const isAbsent = value === null || value === undefined
    if (isSecret && !isAbsent) environment[`SVC_ACTION_PARAM_${name}`] = positionalText(value)
    const isHidden = isSecret && !hasSecretArguments
    const { position } = schema
    // A removed argument leaves an empty place, so that later ones keep their position.
    if (position !== undefined)
      positional.push({ position: Number(position), text: isHidden ? '' : positionalText(value) })
    else if (!isHidden && !isAbsent && value !== false && value !== '') {
      named.push(value === true ? `${operator}${name}` : `${operator}${name}=${text(value)}`)
    }
  }
  positional.sort((a, b) => a.position - b.position)
  const words = [...named, ...positional.map((argument) => argument.text)]
  // Values that are too short to be masked are secrets all the same.
  const isSecret =
    (hasSecretArguments && Object.keys(environment).length > 0) || words.some((word) => containsSecret(word))
  return { arguments: words, environment, isSecret }
}

function positionalText(value: unknown): string {
  if (value === null || value === undefined) return ''
  if (typeof value === 'boolean') return value ? '1' : '0'
  if (Array.isArray(value)) return value.map(text).join(',')
  return text(value)
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : writeJson(value)
}
