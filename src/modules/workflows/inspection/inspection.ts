/** What is found in a definition. */
import type { InspectionEntry } from '../types.ts'
import type { ActionUse } from './content.ts'
import type { InputDefault } from './defaults.ts'

/** What a definition shows by itself. Plain data, which can be sent to another thread. */
export interface Inspection {
  /** Unsorted. */
  readonly entries: readonly InspectionEntry[]
  /** Whether there are more than that. */
  readonly hasMore: boolean
  /** Whose existence and parameters are still to be checked. */
  readonly actions: readonly ActionUse[]
  readonly defaults: readonly InputDefault[]
}

/** `problem`: why the text is no definition. */
export type TextInspection = Inspection | { readonly problem: string }
