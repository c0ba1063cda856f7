/** Errors of workflows. */
import { AppError } from './app-error.ts'

/** @param why ends the sentence, with its full stop */
export const definitionUnreadable = (why: string): AppError =>
  new AppError('DEFINITION_UNREADABLE', `Failed to load workflow definition because ${why}`)

/** @param why ends the sentence, with its full stop */
export const notAWorkflow = (execution: string, why: string): AppError =>
  new AppError('NOT_A_WORKFLOW', `Execution "${execution}" has no workflow: ${why}`)
