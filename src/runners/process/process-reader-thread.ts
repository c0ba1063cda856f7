/** The thread that reads and signals processes for `process-reader.ts`. */
import { answerQuestions } from '../../core/thread.ts'
import { answerAbout } from './process-questions.ts'

answerQuestions(answerAbout)
