/** Inspects definitions that would block the event loop. */
import { answerQuestions } from '../../../core/thread.ts'
import { inspectText, type InspectOptions } from './inspect.ts'
import type { TextInspection } from './inspection.ts'

export interface InspectionQuestion extends InspectOptions {
  text: string
}

answerQuestions<InspectionQuestion, TextInspection>(({ text, ...options }) => inspectText(text, options))
