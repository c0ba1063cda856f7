import { keysOf } from '../../../lib/json/index.ts'
import { isObject } from '../../../lib/schema/index.ts'
import { adopt, applyFilter, isNumeric, Sequence, textOf, typeNameOf, type Value } from '../../../lib/template/index.ts'
import { FunctionError } from './error.ts'
import type { WorkflowFunction } from './function.ts'

/** The functions that are filters of every template: function → filter, parameters. */
const filters: Readonly<Record<string, readonly [filter: string, ...parameters: string[]]>> = {
  to_yaml_string: ['to_yaml_string', 'value', 'indent?', 'allow_unicode?'],
  yaml_dump: ['to_yaml_string', 'value', 'indent?', 'allow_unicode?'],
  json_escape: ['json_escape', 'value'],
  jsonpath_query: ['jsonpath_query', 'value', 'query'],
  regex_match: ['regex_match', 'value', 'pattern', 'ignorecase?'],
  regex_replace: ['regex_replace', 'value', 'pattern', 'replacement', 'ignorecase?'],
  regex_search: ['regex_search', 'value', 'pattern', 'ignorecase?'],
  regex_substring: ['regex_substring', 'value', 'pattern', 'result_index?', 'ignorecase?'],
  version_compare: ['version_compare', 'value', 'pattern'],
  version_more_than: ['version_more_than', 'value', 'pattern'],
  version_less_than: ['version_less_than', 'value', 'pattern'],
  version_equal: ['version_equal', 'value', 'pattern'],
  version_match: ['version_match', 'value', 'pattern'],
  version_bump_major: ['version_bump_major', 'value'],
  version_bump_minor: ['version_bump_minor', 'value'],
  version_bump_patch: ['version_bump_patch', 'value'],
  version_strip_patch: ['version_strip_patch', 'value'],
  use_none: ['use_none', 'value'],
}

function fromFilter([name, [filter, ...parameters]]: readonly [
  string,
  readonly [string, ...string[]],
]): WorkflowFunction {
  const names = parameters.map((parameter) => parameter.replace('?', ''))
  return {
    name,
    parameters,
    isFilter: true,
    givesTemplateValue: true,
    run([value, ...options], { budget }) {
      const named: Record<string, unknown> = {}
      for (const [index, option] of options.entries()) {
        const key = names[index + 1]
        if (option !== undefined && key !== undefined) named[key] = option
      }
      return applyFilter(filter, [value], named, budget)
    },
  }
}

/** Workflows write JSON with a blank after colons only. */
const toJson = (name: string): WorkflowFunction => ({
  name,
  parameters: ['value', 'indent?', 'sort_keys?', 'separators?'],
  isFilter: true,
  givesTemplateValue: true,
  run: ([value, indent = null, sort_keys = false, separators = [',', ': ']], { budget }) =>
    applyFilter('to_json_string', [value], { indent, sort_keys, separators }, budget),
})

/** Reads what the value prints as: a number is JSON too. */
const fromText = (name: string, filter: 'from_json_string' | 'from_yaml_string'): WorkflowFunction => ({
  name,
  parameters: ['value'],
  isFilter: true,
  givesTemplateValue: true,
  run: ([value], { budget }) => applyFilter(filter, [textOf(adopt(value), budget)], {}, budget),
})

const ofPath = (name: string): WorkflowFunction => ({
  name,
  parameters: ['path'],
  isFilter: true,
  run([path], { budget }) {
    if (typeof path === 'string') return applyFilter(name, [path], {}, budget)
    throw new FunctionError('TypeError', `expected str, bytes or os.PathLike object, not ${typeNameOf(adopt(path))}`)
  },
})

const humanTime: WorkflowFunction = {
  name: 'to_human_time_from_seconds',
  parameters: ['seconds'],
  isFilter: true,
  run([seconds], { budget }) {
    // Without a message, as clients know it.
    if (!isNumeric(adopt(seconds))) throw new FunctionError('AssertionError', '')
    return applyFilter('to_human_time_from_seconds', [seconds], {}, budget)
  },
}

const json: WorkflowFunction = {
  name: 'json',
  parameters: ['s'],
  isFilter: true,
  givesTemplateValue: true,
  run([given], { budget }) {
    if (isObject(given)) return given
    if (typeof given !== 'string') throw new FunctionError('TypeError', 'Given object is not typeof string.')
    return applyFilter('from_json_string', [given], {}, budget)
  },
}

/** The items of the lists side by side, as many as the longest has. One list alone stays as it is. */
const zip: WorkflowFunction = {
  name: 'zip',
  parameters: [],
  options: ['pad'],
  isVariadic: true,
  isFilter: true,
  givesTemplateValue: true,
  run([pad = null, ...given], { budget }) {
    if (given.length === 1) return given[0] ?? []
    const lists = given.map((list) => (list === null ? [] : itemsOf(list)))
    const length = Math.max(0, ...lists.map((list) => list.length))
    budget.items(length * lists.length)
    return Array.from(
      { length },
      (_, index): Value => new Sequence(lists.map((list) => adopt(index < list.length ? list[index] : pad))),
    )
  },
}

/** What Python iterates over. */
function itemsOf(value: unknown): readonly unknown[] {
  if (typeof value === 'string') return Array.from(value)
  if (Array.isArray(value)) return value
  if (isObject(value)) return keysOf(value)
  throw new FunctionError('TypeError', `'${typeNameOf(adopt(value))}' object is not iterable`)
}

/** Functions over their arguments alone. */
export const dataFunctions: readonly WorkflowFunction[] = [
  ...Object.entries(filters).map(fromFilter),
  fromText('from_json_string', 'from_json_string'),
  fromText('json_parse', 'from_json_string'),
  fromText('from_yaml_string', 'from_yaml_string'),
  fromText('yaml_parse', 'from_yaml_string'),
  ofPath('basename'),
  ofPath('dirname'),
  humanTime,
  toJson('to_json_string'),
  toJson('json_dump'),
  json,
  zip,
]
