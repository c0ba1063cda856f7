import { textArgument, wholeArgument } from '../arguments.ts'
import { filterError } from '../error.ts'
import { findAll, replaceAll, type RegExpMatch } from '../matching.ts'
import { compileTemplatePattern, paySearch } from '../pattern.ts'
import { isTrue, Sequence, type Value } from '../values.ts'
import { filter, stringFilter, type TemplateFilter } from './filter.ts'
import { textOf } from '../text.ts'

/** One result of Python's `findall`: the match, its only group, or a tuple of its groups. */
function found({ groups }: RegExpMatch): Value {
  const [whole, ...captured] = groups.map((group) => group ?? '')
  if (captured.length > 1) return new Sequence(captured)
  return captured[0] ?? whole ?? ''
}

const flag = (value: Value | undefined): boolean => value !== undefined && isTrue(value)

/** Filters that search text. */
export const regexFilters: readonly [string, TemplateFilter][] = [
  stringFilter('regex_match', 'pattern ignorecase?', (text, [pattern, ignoreCase], { budget }) => {
    const expression = compileTemplatePattern(
      textArgument('regex_match', pattern),
      { ignoreCase: flag(ignoreCase) },
      budget,
    )
    paySearch(expression, text, budget)
    return expression.matcher(text).lookingAt()
  }),
  stringFilter('regex_search', 'pattern ignorecase?', (text, [pattern, ignoreCase], { budget }) => {
    const expression = compileTemplatePattern(
      textArgument('regex_search', pattern),
      { ignoreCase: flag(ignoreCase) },
      budget,
    )
    paySearch(expression, text, budget)
    return expression.test(text)
  }),
  stringFilter('regex_replace', 'pattern replacement ignorecase?', (text, [pattern, to, ignoreCase], { budget }) =>
    replaceAll(
      text,
      compileTemplatePattern(
        textArgument('regex_replace', pattern),
        { ignoreCase: flag(ignoreCase), exactEnd: true },
        budget,
      ),
      textArgument('regex_replace', to),
      budget,
    ),
  ),
  filter('regex_substring', 'pattern result_index? ignorecase?', (value, [pattern, index, ignoreCase], { budget }) => {
    const text = textOf(value, budget)
    const expression = compileTemplatePattern(
      textArgument('regex_substring', pattern),
      { ignoreCase: flag(ignoreCase), exactEnd: true },
      budget,
    )
    const wanted = wholeArgument('regex_substring', index, 0)
    const results = Array.from(findAll(expression, text, budget), found)
    const result = results.at(wanted)
    if (result === undefined) {
      throw filterError(
        `regex_substring found ${results.length} matches, so there is no result ${wanted}`,
        'IndexError',
      )
    }
    return result
  }),
]
