/** Which names of functions and variables expressions may use. */
import { callableNames } from '../../../lib/template/index.ts'
import { functionNames, hasFunction, parse, partsOf, YaqlError } from '../../../lib/yaql/index.ts'
import type { FoundExpression, Language } from './find.ts'
import { workflowFunctions } from './functions.ts'

const ownNames: ReadonlySet<string> = new Set(workflowFunctions.map(({ name }) => name))

/** Functions, methods and filters that a language has, in workflows. */
export function callableIn(language: Language): string[] {
  return [...ownNames, ...(language === 'yaql' ? functionNames() : callableNames)]
}

/** What the expressions of one text call, and nothing has, each once. Expressions that define functions may call any. */
export function unknownFunctions(expressions: readonly FoundExpression[]): string[] {
  // A template with statements is one program, whose macros its blocks may call: its statements know all calls.
  const statements = expressions.filter(({ text }) => text.startsWith('{%'))
  const checked = statements.length > 0 ? statements : expressions
  const names = checked.flatMap(({ language, functions }) => {
    if (language === 'jinja') return functions.filter((name) => !ownNames.has(name) && !callableNames.has(name))
    return functions.includes('def') ? [] : functions.filter((name) => !ownNames.has(name) && !hasFunction(name))
  })
  return [...new Set(names)]
}

const pythonWords: ReadonlySet<unknown> = new Set(['True', 'False', 'None'])

/** Words of Python that are texts in YAQL, and count as true, each once. */
export function pythonWordsIn(expressions: readonly FoundExpression[]): string[] {
  const words = expressions.flatMap(({ language, text }) => (language === 'yaql' ? wordsOf(text.slice(2, -2)) : []))
  return [...new Set(words)]
}

function wordsOf(source: string): string[] {
  try {
    return Array.from(partsOf(parse(source.trim())), (part) =>
      part.kind === 'constant' && part.isKeyword ? part.value : '',
    )
      .filter((value) => pythonWords.has(value))
      .map(String)
  } catch (error) {
    if (error instanceof YaqlError) return []
    throw error
  }
}
