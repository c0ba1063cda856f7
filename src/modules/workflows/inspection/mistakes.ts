import type { InspectionEntry } from '../types.ts'
import type { Part } from './parts.ts'
import { textsIn, type Texts } from './texts.ts'

/** What cannot be parsed in the expressions of a part. */
export function* inspectExpressions(
  { value, spec_path, schema_path }: Part,
  texts: Texts,
): Generator<InspectionEntry, void> {
  for (const text of textsIn(value)) {
    for (const { language = null, expression, message } of texts.find(text).mistakes) {
      yield { type: 'expression', message, spec_path, schema_path, language, expression }
    }
  }
}
