/** Inspects definitions that would block the event loop. */
import { answerQuestions } from '../../../core/thread.ts'
import { inspectText, type InspectOptions, type TextInspection } from './inspect.ts'

export interface InspectionQuestion extends InspectOptions {
  text: string
}

answerQuestions<InspectionQuestion, TextInspection>(({ text, ...options }) => inspectText(text, options))
