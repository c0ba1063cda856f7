/** The registered actions, as inspection looks them up. */
import { actionResource } from '../../core/permissions.ts'
import type { Rights } from '../../http/index.ts'
import type { Actions } from '../actions/index.ts'
import type { ActionCatalog } from './inspection/content.ts'

export type ActionSource = Pick<Actions, 'find' | 'parametersOf' | 'refsOfPack'>

/** As far as the holder of the rights may see them. Each action is looked up once. */
export function catalogFor(actions: ActionSource, rights: Pick<Rights, 'may'>): ActionCatalog {
  const known = new Map<string, ReturnType<ActionCatalog['parametersOf']>>()
  const mayView = (ref: string): boolean => rights.may('action_view', actionResource(ref))
  return {
    parametersOf(ref) {
      if (known.has(ref)) return known.get(ref)
      const action = actions.find(ref)
      const parameters = action === undefined ? undefined : mayView(ref) ? actions.parametersOf(action) : 'hidden'
      known.set(ref, parameters)
      return parameters
    },
    refsOfPack: (pack) => actions.refsOfPack(pack).filter(mayView),
  }
}
