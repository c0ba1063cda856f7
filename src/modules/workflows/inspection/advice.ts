/** What is likely to be a mistake in expressions, although the workflow can run. */
import { shown } from '../../../lib/text/index.ts'
import type { InspectionEntry } from '../types.ts'
import { callableIn, ourFunction, pythonWordsIn, unfinishedIn, unknownFunctions } from '../expressions/index.ts'
import type { Hints } from './hints.ts'
import type { Part } from './parts.ts'
import { textsIn, type Texts } from './texts.ts'

export function* adviseOn(
  { value, spec_path, schema_path, isCondition = false }: Part,
  texts: Texts,
  hints: Hints,
): Generator<InspectionEntry, void> {
  const warning = (message: string): InspectionEntry => ({ type: 'warning', message, spec_path, schema_path })
  for (const text of textsIn(value)) {
    const { expressions, mistakes } = texts.find(text)
    if (mistakes.length > 0) continue
    const unfinished = unfinishedIn(text)
    if (unfinished !== undefined) {
      const { open, close, spansLines } = unfinished
      yield warning(
        spansLines
          ? `An expression spans lines, so it stays text. Write it in one line, or fold the lines with ">-".`
          : `"${open}" has no "${close}" after it, so it stays text.`,
      )
    } else if (isCondition && expressions.length === 0 && text !== '') {
      yield warning(
        `"${shown(text)}" is no expression, so the condition always holds. Write it as <% ${shown(text)} %>.`,
      )
    }
    for (const word of pythonWordsIn(expressions)) {
      const constant = word === 'None' ? 'null' : word.toLowerCase()
      yield warning(`"${word}" is a text in YAQL, and counts as true. The constant is ${constant}.`)
    }
    for (const name of unknownFunctions(expressions)) {
      const ours = ourFunction(name)
      const language = expressions[0]?.language ?? 'yaql'
      const hint =
        ours === undefined ? hints.of(name, () => callableIn(language)) : hints.give(`Its name here is "${ours}".`)
      yield { ...warning(`The function "${shown(name)}" is unknown.`), ...hint }
    }
  }
}
