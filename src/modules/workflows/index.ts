/** Workflows: their definitions, and inspection. */
import type { Module } from '../../core/module.ts'
import type { Actions } from '../actions/index.ts'
import { createInspector } from './inspection/inspector.ts'
import { createWorkflowRoutes } from './routes.ts'

export function createWorkflows({ actions }: { actions: Actions }): Module {
  const inspector = createInspector()
  return {
    name: 'workflows',
    routes: createWorkflowRoutes({ actions, inspector }),
    stop: () => inspector.stop(),
  }
}
