/** What the runner of an execution gets. */
import { readerOf } from '../../../core/template-reader.ts'
import type { Actions } from '../../actions/index.ts'
import { templateScope, type TemplateSources } from '../request/template-scope.ts'
import type { ParameterSecrets } from '../secrets/parameters.ts'
import type { Prepare } from './dispatcher.ts'

export function createPrepare(deps: {
  actions: Actions
  parameters: Pick<ParameterSecrets, 'decrypt'>
  readonly sources: TemplateSources
  /** Public address of the API with its version. */
  apiUrl(): string
}): Prepare {
  const { actions, sources } = deps

  return async (execution, secrets) => {
    const { action, runner } = execution
    if (actions.findRunnerType(runner.name)?.enabled !== true) {
      throw new Error(`The runner "${runner.name}" has been disabled by the administrator.`)
    }
    const decrypted = deps.parameters.decrypt(execution)
    secrets.push(...actions.secretsIn(action, runner, decrypted.parameters), ...decrypted.secrets)
    const scope = templateScope(sources, execution, secrets)
    const turn = { caller: execution.user, isRequest: false }
    const effective = await actions.effective(action, runner, decrypted.parameters, scope, turn)
    secrets.push(...actions.secretsIn(action, runner, { ...effective.runnerParameters, ...effective.actionParameters }))
    return {
      ...effective,
      parameterSchemas: action.parameters,
      entryPoint: actions.entryPointOf(action),
      packFolder: actions.folderOf(action.pack) ?? '',
      config() {
        const config = sources.packConfigs.resolve(action.pack, readerOf(execution))
        secrets.push(...config.secrets)
        return config
      },
      env: {
        SVC_ACTION_DEBUG: effective.runnerParameters['debug'] === true ? 'True' : 'False',
        SVC_ACTION_PACK_NAME: action.pack,
        SVC_ACTION_EXECUTION_ID: execution.id,
        SVC_ACTION_API_URL: deps.apiUrl(),
      },
    }
  }
}
