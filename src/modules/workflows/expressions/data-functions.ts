import { applyFilter, Sequence, type Value, adopt } from '../../../lib/template/index.ts'
import { FunctionError } from './error.ts'
import type { WorkflowFunction } from './function.ts'

/** The functions that are filters of every template: function → filter, parameters. */
const filters: Readonly<Record<string, readonly [filter: string, ...parameters: string[]]>> = {
  from_json_string: ['from_json_string', 'value'],
  json_parse: ['from_json_string', 'value'],
  from_yaml_string: ['from_yaml_string', 'value'],
  yaml_parse: ['from_yaml_string', 'value'],
  to_yaml_string: ['to_yaml_string', 'value', 'indent?', 'allow_unicode?'],
  yaml_dump: ['to_yaml_string', 'value', 'indent?', 'allow_unicode?'],
  json_escape: ['json_escape', 'value'],
  jsonpath_query: ['jsonpath_query', 'value', 'query'],
  regex_match: ['regex_match', 'value', 'pattern', 'ignorecase?'],
  regex_replace: ['regex_replace', 'value', 'pattern', 'replacement', 'ignorecase?'],
  regex_search: ['regex_search', 'value', 'pattern', 'ignorecase?'],
  regex_substring: ['regex_substring', 'value', 'pattern', 'result_index?', 'ignorecase?'],
  basename: ['basename', 'path'],
  dirname: ['dirname', 'path'],
  version_compare: ['version_compare', 'value', 'pattern'],
  version_more_than: ['version_more_than', 'value', 'pattern'],
  version_less_than: ['version_less_than', 'value', 'pattern'],
  version_equal: ['version_equal', 'value', 'pattern'],
  version_match: ['version_match', 'value', 'pattern'],
  version_bump_major: ['version_bump_major', 'value'],
  version_bump_minor: ['version_bump_minor', 'value'],
  version_bump_patch: ['version_bump_patch', 'value'],
  version_strip_patch: ['version_strip_patch', 'value'],
  to_human_time_from_seconds: ['to_human_time_from_seconds', 'seconds'],
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
  run: ([value, indent = null, sort_keys = false, separators = [',', ': ']], { budget }) =>
    applyFilter('to_json_string', [value], { indent, sort_keys, separators }, budget),
})

const json: WorkflowFunction = {
  name: 'json',
  parameters: ['s'],
  run([text], { budget }) {
    if (typeof text !== 'string') throw new FunctionError('TypeError', 'Given object is not typeof string.')
    return applyFilter('from_json_string', [text], {}, budget)
  },
}

/** The items of the lists side by side, as many as the longest has. */
const zip: WorkflowFunction = {
  name: 'zip',
  parameters: ['pad?'],
  isVariadic: true,
  run([pad = null, ...given], { budget }) {
    const lists = given.map((list): readonly unknown[] => {
      if (list === null) return []
      if (typeof list === 'string') return Array.from(list)
      if (Array.isArray(list)) return list
      throw new FunctionError('TypeError', 'zip() takes lists')
    })
    const length = Math.max(0, ...lists.map((list) => list.length))
    budget.items(length * Math.max(1, lists.length))
    return Array.from(
      { length },
      (_, index): Value => new Sequence(lists.map((list) => adopt(index < list.length ? list[index] : pad))),
    )
  },
}

/** Functions over their arguments alone. */
export const dataFunctions: readonly WorkflowFunction[] = [
  ...Object.entries(filters).map(fromFilter),
  toJson('to_json_string'),
  toJson('json_dump'),
  json,
  zip,
]
