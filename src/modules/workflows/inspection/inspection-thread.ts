/** Reads definitions that would block the event loop. */
import { answerQuestions } from '../../../core/thread.ts'
import { inspectText, type InspectOptions } from './inspect.ts'
import { graphOfText } from '../either.ts'
import type { WorkflowGraph } from '../types.ts'
import type { TextInspection } from './inspection.ts'

export interface InspectionQuestion extends InspectOptions {
  text: string
  /** Whether the graph is wanted. Default: the mistakes. */
  isGraph?: true
}

export type InspectionAnswer = TextInspection | WorkflowGraph

answerQuestions<InspectionQuestion, InspectionAnswer>(({ text, isGraph, ...options }) =>
  isGraph === true ? graphOfText(text) : inspectText(text, options),
)
