/** A pack whose actions are the workflows of a test. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface WorkflowAction {
  /** Text of the definition. */
  definition: string
  runner?: 'orquesta' | 'action-chain'
  parameters?: Readonly<Record<string, object>>
  outputSchema?: object
}

/** By name; all of the pack `flow`. */
export type WorkflowActions = Readonly<Record<string, WorkflowAction | string>>

export function writeFlowPack(basePath: string, actions: WorkflowActions): void {
  const pack = join(basePath, 'packs', 'flow')
  mkdirSync(join(pack, 'actions', 'workflows'), { recursive: true })
  writeFileSync(
    join(pack, 'pack.yaml'),
    'name: flow\nref: flow\ndescription: For tests.\nversion: 1.0.0\nauthor: tests\n',
  )
  for (const [name, given] of Object.entries(actions)) {
    const action = typeof given === 'string' ? { definition: given } : given
    const { runner = 'orquesta', parameters = {}, outputSchema: output_schema = {} } = action
    writeFileSync(join(pack, 'actions', 'workflows', `${name}.yaml`), action.definition)
    writeFileSync(
      join(pack, 'actions', `${name}.json`),
      JSON.stringify({
        name,
        runner_type: runner,
        entry_point: `workflows/${name}.yaml`,
        enabled: true,
        parameters,
        output_schema,
      }),
    )
  }
}
