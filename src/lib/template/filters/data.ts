import { numberArgument, sizeArgument, textArgument, wholeArgument } from '../arguments.ts'
import { typeError } from '../error.ts'
import { iterate } from '../iteration.ts'
import { jsonText, readTemplateJson, writeJson, type JsonStyle } from '../json.ts'
import type { Budget } from '../limits.ts'
import { isList, isTrue, Sequence, typeNameOf, type Value } from '../values.ts'
import { filter, stringFilter, type TemplateFilter } from './filter.ts'
import { queryJsonPath } from './jsonpath.ts'
import { prettyPrint } from './pprint.ts'
import { readYaml, writeYaml } from './yaml.ts'

/** JSON that may stand inside markup: the characters that could end a script or an attribute are escaped. */
function markupJson(value: Value, indent: string | undefined, budget: Budget): string {
  const text = writeJson(value, { indent, sortKeys: true }, budget)
  return text.replace(/[<>&']/g, (character) => `\\u00${character.charCodeAt(0).toString(16)}`)
}

function indentArgument(what: string, value: Value | undefined, budget: Budget): string | undefined {
  if (value === undefined || value === null) return undefined
  return typeof value === 'string' ? value : ' '.repeat(sizeArgument(what, value, 0, budget))
}

/** None: those of Python. */
function separatorsOf(value: Value | undefined, budget: Budget): JsonStyle {
  if (value === undefined) return { itemSeparator: ',' }
  if (value === null) return {}
  if (!isList(value) && !(value instanceof Sequence)) throw typeError('separators are two texts')
  const [item, key] = iterate(value, budget)
  return {
    itemSeparator: textArgument('to_json_string', item),
    keySeparator: textArgument('to_json_string', key),
  }
}

const units: readonly (readonly [string, number])[] = [
  ['y', 365 * 86_400],
  ['d', 86_400],
  ['h', 3600],
  ['m', 60],
  ['s', 1],
]

/** Such as `1d10h17m36s`: every unit from the largest that is not zero; below one second in microseconds. */
function humanTime(seconds: number): string {
  if (!Number.isFinite(seconds) || seconds < 0) throw typeError('to_human_time_from_seconds needs seconds from 0')
  if (seconds > 0 && seconds < 1) return `${Math.round(seconds * 1_000_000)}μs`
  let rest = Math.ceil(seconds)
  const parts: string[] = []
  for (const [unit, size] of units) {
    const count = Math.floor(rest / size)
    rest -= count * size
    if (count > 0 || parts.length > 0 || unit === 's') parts.push(`${count}${unit}`)
  }
  return parts.join('')
}

const readText = (what: string, value: Value): string => {
  if (typeof value !== 'string') throw typeError(`${what} needs text, not ${typeNameOf(value)}`)
  return value
}

/** Filters that read and write structured text, and a few conversions. */
export const dataFilters: readonly [string, TemplateFilter][] = [
  filter('tojson', 'indent?', (value, [indent], { budget }) =>
    markupJson(value, indentArgument('tojson', indent, budget), budget),
  ),
  filter('pprint', '', (value, _args, { budget }) => prettyPrint(value, budget)),
  filter('from_json_string', '', (value, _args, { budget }) =>
    readTemplateJson(readText('from_json_string', value), budget),
  ),
  filter('from_yaml_string', '', (value, _args, { budget }) => readYaml(readText('from_yaml_string', value), budget)),
  filter(
    'to_json_string',
    'indent? sort_keys? separators?',
    (value, [indent, sortKeys = false, separators], { budget }) =>
      writeJson(
        value,
        {
          indent: indentArgument('to_json_string', indent, budget),
          sortKeys: isTrue(sortKeys),
          ...separatorsOf(separators, budget),
        },
        budget,
      ),
  ),
  filter('to_yaml_string', 'indent? allow_unicode?', (value, [indent], { budget }) =>
    writeYaml(value, indent === undefined || indent === null ? undefined : yamlIndent(indent), budget),
  ),
  filter('to_complex', '', (value, _args, { budget }) => writeJson(value, {}, budget)),
  stringFilter('json_escape', '', (text, _args, { budget }) => {
    budget.text(text.length)
    return jsonText(text).slice(1, -1)
  }),
  filter('jsonpath_query', 'query', (value, [query], { budget }) => {
    const found = queryJsonPath(value, textArgument('jsonpath_query', query), budget)
    return found.length === 0 ? null : found
  }),
  filter('to_human_time_from_seconds', '', (value) => humanTime(numberArgument('to_human_time_from_seconds', value))),
  filter('use_none', '', (value) => value),
]

function yamlIndent(value: Value): number {
  const indent = wholeArgument('to_yaml_string', value)
  if (indent < 1 || indent > 20) throw typeError('to_yaml_string needs an indent from 1 to 20')
  return indent
}
