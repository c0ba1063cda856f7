/** Reads the definitions of workflows from files, checks them, and keeps compiled ones. */
import type { Compat, OurDefinition } from '../../../core/compat/index.ts'
import { isAppError } from '../../../core/errors.ts'
import { entryPointFile } from '../../../core/pack-content.ts'
import { allRights } from '../../../http/index.ts'
import { Lru } from '../../../lib/cache/index.ts'
import { createContainedFiles, type ContainedProblem } from '../../../lib/files/index.ts'
import { actionChainName } from '../../../runners/index.ts'
import type { WorkflowStart } from '../../executions/ports.ts'
import type { Execution } from '../../executions/types.ts'
import { catalogFor, type ActionSource } from '../catalog.ts'
import { brokenOff, readChain, type ChainProblem } from '../chain/index.ts'
import { MAX_DEFINITION_BYTES } from '../definition/read.ts'
import type { Inspector } from '../inspection/inspector.ts'
import { chainProgram } from './action-chain.ts'
import { orquestaProgram } from './orquesta.ts'
import type { Program, Programs, Unusable } from './program.ts'

const MAX_KEPT = 500
const MAX_KEPT_CHARS = 16 * 1024 * 1024

export function createPrograms(deps: {
  actions: ActionSource
  inspector: Pick<Inspector, 'inspect'>
  compat: Pick<Compat, 'definition'>
}): Programs {
  const kept = new Lru<string, Program>(MAX_KEPT, MAX_KEPT_CHARS)
  const readContainedFile = createContainedFiles({ files: MAX_KEPT, chars: MAX_KEPT_CHARS })

  /** @returns the text, or why it cannot be read: the end of a sentence */
  async function readFile(packFolder: string, entryPoint: string): Promise<OurDefinition | { problem: string }> {
    if (entryPoint === '') return { problem: 'the action has no entry_point.' }
    const file = await readContainedFile(packFolder, entryPointFile('actions', entryPoint) ?? '', MAX_DEFINITION_BYTES)
    return 'text' in file
      ? deps.compat.definition(file.text)
      : { problem: `the file ${entryPoint} ${problems[file.problem]}.` }
  }

  function keep(key: string, program: Program): Program {
    kept.set(key, program, key.length)
    return program
  }

  function workflow(text: string): Program {
    const key = `orquesta ${text}`
    return kept.get(key) ?? keep(key, orquestaProgram(text))
  }

  function chain({ action }: Execution, text: string): Program | ChainProblem {
    const key = `chain ${action.ref} ${text}`
    const known = kept.get(key)
    if (known !== undefined) return known
    const read = readChain(text, { action: action.name, file: action.entry_point })
    return 'problem' in read ? read : keep(key, chainProgram(read))
  }

  async function prepareWorkflow(
    { text, asWritten }: OurDefinition,
    start: WorkflowStart,
  ): Promise<Program | Unusable> {
    try {
      const actions = catalogFor(deps.actions, allRights)
      const errors = await deps.inspector.inspect(text, { actions, variables: ['svc', 'parent'], form: 'workflow' })
      if (errors.length > 0) return unusable(...asWritten(errors))
    } catch (error) {
      if (!isAppError(error) || error.code !== 'DEFINITION_UNREADABLE') throw error
      return unusable({ message: error.message })
    }
    const program = workflow(text)
    const unknown = unknownNames(program, start.runnerParameters['notify'])
    if (unknown.length === 0) return program
    const names = unknown.join(', ')
    return unusable({
      message: `The following tasks in the notify parameter do not exist in the workflow definition: ${names}.`,
    })
  }

  return {
    async prepare(execution, start) {
      const isChain = execution.runner.name === actionChainName
      const file = await readFile(start.packFolder, execution.action.entry_point)
      if ('problem' in file) {
        const { problem } = file
        return isChain
          ? {
              result: brokenOff(
                `Failed to parse action chain definition from "${execution.action.entry_point}": ${problem}`,
              ),
            }
          : unusable({ message: `Failed to load workflow definition because ${problem}` })
      }
      const { text } = file
      if (!isChain) {
        const program = await prepareWorkflow(file, start)
        return 'result' in program ? program : { text, program }
      }
      const program = chain(execution, text)
      return 'problem' in program
        ? { result: brokenOff(file.asWritten(program.problem), program.line) }
        : { text, program }
    },
    compile(execution, text) {
      if (execution.runner.name !== actionChainName) return workflow(text)
      const program = chain(execution, text)
      if ('problem' in program) throw new Error(program.problem)
      return program
    },
  }
}

const unusable = (...errors: readonly object[]): Unusable => ({ result: { output: null, errors } })

const problems: Readonly<Record<ContainedProblem, string>> = {
  missing: 'does not exist',
  outside: 'is not below the folder of the pack',
  unreadable: 'cannot be read',
  'not a file': 'is not a file',
  'too large': `has more than ${MAX_DEFINITION_BYTES} bytes`,
  'not UTF-8': 'is not UTF-8 text',
}

function unknownNames({ graph }: Program, names: unknown): string[] {
  return (Array.isArray(names) ? (names as unknown[]) : []).filter(
    (name): name is string => typeof name === 'string' && !graph.taskIndexes.has(name),
  )
}
