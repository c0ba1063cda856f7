/** A new action: its metadata and its entry file. */
import { join } from 'node:path'
import { readJson } from '../../lib/json/index.ts'
import { isObject } from '../../lib/schema/index.ts'
import { exitCodes } from '../exit-codes.ts'
import { CliFailure } from '../failures.ts'
import { printable } from '../output/print.ts'
import { toYaml } from '../output/yaml.ts'
import type { PlannedFile } from './write-files.ts'

export type ActionKind = 'shell' | 'python'

export interface ActionParameter {
  name: string
  schema: { type: string; description: string; required?: true; secret?: true; default?: unknown; position?: number }
}

/** Types of a parameter, and what `svc run` may give it in an example. */
export const parameterTypes = {
  string: 'text',
  integer: '1',
  number: '1.5',
  boolean: 'true',
  array: 'a,b',
  object: '{"a":1}',
  secret: 'text',
} as const satisfies Readonly<Record<string, string>>

type ParameterType = keyof typeof parameterTypes

/** Parameters of the runners, which an action cannot declare anew. */
export const runnerParameterNames: Readonly<Record<ActionKind, readonly string[]>> = {
  shell: [
    'background_grace_seconds',
    'background_jobs',
    'content_version',
    'cwd',
    'debug',
    'env',
    'kwarg_op',
    'secret_arguments',
    'sudo',
    'sudo_password',
    'timeout',
  ],
  python: ['background_grace_seconds', 'background_jobs', 'content_version', 'debug', 'env', 'log_level', 'timeout'],
}

const pythonWords: ReadonlySet<string> = new Set(
  'and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return self try while with yield'.split(
    ' ',
  ),
)
const MAX_PARAMETERS = 50

/** Reads `name`, `name:type` and `name:type=default`. @throws CliFailure (2) */
export function readParameter(word: string): ActionParameter {
  const [, name = '', type = 'string', text] = /^([a-z][a-z0-9_]{0,63})(?::([a-z]+))?(?:=([^]*))?$/.exec(word) ?? []
  if (name === '') {
    throw problem(word, 'write name:type or name:type=default; a name has lower case letters, digits and "_"')
  }
  if (!Object.hasOwn(parameterTypes, type)) {
    throw problem(word, `"${printable(type)}" is no type; use ${Object.keys(parameterTypes).join(', ')}`)
  }
  const isSecret = type === 'secret'
  return {
    name,
    schema: {
      type: isSecret ? 'string' : type,
      description: '',
      ...(isSecret ? { secret: true as const } : {}),
      ...(text === undefined
        ? { required: true as const }
        : { default: readDefault(word, type as ParameterType, text) }),
    },
  }
}

/** @throws CliFailure (2) */
function readDefault(word: string, type: ParameterType, text: string): unknown {
  if (type === 'string' || type === 'secret') return text
  let value: unknown
  try {
    value = readJson(text)
  } catch {
    value = undefined
  }
  const fits = {
    integer: typeof value === 'number' && Number.isSafeInteger(value),
    number: typeof value === 'number',
    boolean: typeof value === 'boolean',
    array: Array.isArray(value),
    object: isObject(value),
  }
  if (!fits[type]) throw problem(word, `the default is no ${type} as JSON writes it, such as ${sampleOf(type)}`)
  return value
}

const sampleOf = (type: ParameterType): string => (type === 'array' ? '["a", "b"]' : parameterTypes[type])

function problem(word: string, why: string): CliFailure {
  return new CliFailure(`--parameter ${printable(word)}: ${why}.`, exitCodes.usage)
}

/** @throws CliFailure (2) */
function checkParameters(parameters: readonly ActionParameter[], kind: ActionKind): void {
  if (parameters.length > MAX_PARAMETERS) {
    throw new CliFailure(`There are more than ${MAX_PARAMETERS} parameters.`, exitCodes.usage)
  }
  const seen = new Set<string>()
  for (const { name } of parameters) {
    if (seen.has(name)) throw problem(name, 'the name is used twice')
    if (runnerParameterNames[kind].includes(name)) {
      throw problem(name, 'the runner has a parameter of this name; choose another one')
    }
    if (kind === 'python' && pythonWords.has(name)) throw problem(name, 'this is a word of Python; choose another name')
    seen.add(name)
  }
}

/**
 * The files of an action, the metadata last.
 *
 * @param folder of the pack, absolute
 * @throws CliFailure (2)
 */
export function planAction(
  folder: string,
  { name, kind, parameters }: { name: string; kind: ActionKind; parameters: readonly ActionParameter[] },
): PlannedFile[] {
  checkParameters(parameters, kind)
  const entryPoint = `${name}.${kind === 'shell' ? 'sh' : 'py'}`
  const text = kind === 'shell' ? shellText(name, parameters) : pythonText(name, parameters)
  return [
    { path: join(folder, 'actions', entryPoint), text, isExecutable: kind === 'shell' },
    { path: join(folder, 'actions', `${name}.yaml`), text: metadataText(name, kind, entryPoint, parameters) },
  ]
}

/** The command that runs it. */
export function runCommandOf(ref: string, parameters: readonly ActionParameter[]): string {
  const values = parameters
    .filter(({ schema }) => schema.required === true)
    .map(({ name, schema }) => {
      const sample = parameterTypes[schema.type as ParameterType]
      return ` ${name}=${schema.type === 'object' ? `'${sample}'` : sample}`
    })
  return `svc run ${ref}${values.join('')}`
}

function metadataText(
  name: string,
  kind: ActionKind,
  entryPoint: string,
  parameters: readonly ActionParameter[],
): string {
  const schemas = Object.fromEntries(
    parameters.map(({ name: each, schema }, position) => [each, kind === 'shell' ? { ...schema, position } : schema]),
  )
  return `---
${toYaml({ name })}# Say what the action does: lists and chat show it.
description: ''
runner_type: ${kind === 'shell' ? 'local-shell-script' : 'python-script'}
entry_point: ${toYaml(entryPoint).trimEnd()}
enabled: true
# Types: string, integer, number, boolean, array, object. With "secret: true" svc masks a value.${
    kind === 'shell' ? '\n# "position" is the place among the arguments of the script.' : ''
  }
${parameters.length === 0 ? 'parameters: {}\n' : toYaml({ parameters: schemas })}`
}

function shellText(name: string, parameters: readonly ActionParameter[]): string {
  const lines = parameters.map(
    ({ name: each }, index) => `${each}=${index < 9 ? `$${index + 1}` : `\${${index + 1}}`}\n`,
  )
  const shown = parameters.filter(({ schema }) => schema.secret !== true).map(({ name: each }) => ` ${each}=$${each}`)
  return `#!/bin/sh
# ${name}.yaml, beside this file, describes the action.${
    parameters.length === 0 ? '' : ' Parameters come as arguments, in the order of "position".'
  }
# Exit code 0: the action succeeded; any other: it failed. svc keeps what the script prints.
set -eu
${lines.length === 0 ? '' : `\n${lines.join('')}`}
echo "${name} runs${shown.join('')}"
`
}

function pythonText(name: string, parameters: readonly ActionParameter[]): string {
  const className = name
    .split(/[_-]+/)
    .map((word) => `${word.slice(0, 1).toUpperCase()}${word.slice(1)}`)
    .join('')
  const shown = parameters.filter(({ schema }) => schema.secret !== true).map(({ name: each }) => `"${each}": ${each}`)
  return `from svc.action import Action


class ${/^\d/.test(className) ? `Action${className}` : className === '' || className === 'Action' ? 'NewAction' : className}(Action):
    # ${name}.yaml, beside this file, describes the action. Its parameters are the arguments of run().
    def run(self${parameters.map(({ name: each }) => `, ${each}`).join('')}):
        self.logger.info("${name} runs")
        # What run() returns is the result. An exception, or "return False, value", makes the action fail.
        return {${['"message": "It works."', ...shown].join(', ')}}
`
}
