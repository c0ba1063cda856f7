/** A server with workflows of a test: their definitions are files of a pack, their actions are real. */
import { createTestApp, type InProcessApp, type TestAppOptions } from './app.ts'
import { writeFlowPack, type WorkflowActions } from './flow-pack.ts'
import { makeFolder, type TemporaryFolder } from './folders.ts'
import type { ExecutionAnswer } from './server.ts'
import { waitFor } from './wait.ts'

export interface WorkflowApp extends InProcessApp {
  /** Requests a workflow of the pack. */
  begin(name: string, parameters?: object): Promise<ExecutionAnswer>
  /** Its execution once it has ended. */
  ended(id: string): Promise<ExecutionAnswer>
  /** Both. */
  run(name: string, parameters?: object): Promise<ExecutionAnswer>
  execution(id: string): Promise<ExecutionAnswer>
  /** Executions of its tasks, oldest first. */
  children(id: string): Promise<ExecutionAnswer[]>
  /** Waits until the execution has the status. */
  reaches(id: string, ...statuses: string[]): Promise<ExecutionAnswer>
}

const final = ['succeeded', 'failed', 'timeout', 'canceled', 'abandoned']

/** @param folder kept by the caller, who starts another server on it; default: removed with the server */
export async function createWorkflowApp(
  actions: WorkflowActions,
  options: TestAppOptions = {},
  folder?: TemporaryFolder,
): Promise<WorkflowApp> {
  const own = folder ?? makeFolder()
  writeFlowPack(own.path, actions)
  const app = await createTestApp({ ...options, basePath: own.path })
  const execution = async (id: string): Promise<ExecutionAnswer> =>
    (await app.call<ExecutionAnswer>('GET', `/v1/executions/${id}`)).body
  const reaches = (id: string, ...statuses: string[]): Promise<ExecutionAnswer> =>
    waitFor(`${id} to be ${statuses.join(' or ')}`, async () => {
      const seen = await execution(id)
      if (final.includes(seen.status) && !statuses.includes(seen.status))
        throw new Error(`${id} is ${seen.status}: ${JSON.stringify(seen.result)}`)
      return statuses.includes(seen.status) && seen
    })
  const begin = async (name: string, parameters: object = {}): Promise<ExecutionAnswer> => {
    const { status, body } = await app.call<ExecutionAnswer>('POST', '/v1/executions', {
      action: `flow.${name}`,
      parameters,
    })
    if (status !== 201) throw new Error(`${name} was refused: ${JSON.stringify(body)}`)
    return body
  }
  const ended = (id: string): Promise<ExecutionAnswer> => reaches(id, ...final)
  return {
    ...app,
    execution,
    reaches,
    begin,
    ended,
    run: async (name, parameters) => ended((await begin(name, parameters)).id),
    async children(id) {
      const { body } = await app.call<ExecutionAnswer[]>('GET', `/v1/executions?parent=${id}&limit=100&sort_asc=true`)
      return body
    },
    async stop() {
      await app.stop()
      if (folder === undefined) own.remove()
    },
  }
}

export { writeFlowPack, type WorkflowAction, type WorkflowActions } from './flow-pack.ts'
