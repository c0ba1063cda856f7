/** Templates that Python actions render by themselves: the filters do what those of the server do. */
import { spawnSync } from 'node:child_process'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, expect, it } from 'vitest'
import { startScript } from '../../src/runners/python/interpreters.ts'
import { render } from '../../src/lib/template/index.ts'
import { ensureDebianPackage } from '../helpers/apt.ts'

const packages = '/usr/lib/python3/dist-packages'
beforeAll(async () => {
  await ensureDebianPackage('python3-jinja2', `${packages}/jinja2`)
  await ensureDebianPackage('python3-yaml', `${packages}/yaml`)
  await ensureDebianPackage('python3-jsonpath-rw', `${packages}/jsonpath_rw`)
}, 300_000)

const variables = {
  store: { book: [{ title: 'A', price: 8.95 }, { title: 'B' }], bicycle: { color: 'red', sizes: [1, 2] } },
  text: 'A "quoted"\nline\t\\ with ä',
  yaml: 'b: [1, {c: x}]\na: ~\nd: "yes"\n',
  nothing: null,
}

const templates = [
  ...['1.2.3 1.2.4', '1.10.0 1.9.0', '1.0.0 1.0.0+build', '1.0.0-alpha 1.0.0', '1.0.0-alpha.1 1.0.0-alpha.beta']
    .concat('1.0.0-rc.2 1.0.0-rc.10', '1.0.0-rc.1 1.0.0-rc', '2.0.0 2.0.0', '1.0.0-1 1.0.0-a', '1.0.0-9a 1.0.0-10')
    .flatMap((pair) => {
      const [one = '', other = ''] = pair.split(' ')
      return ['compare', 'more_than', 'less_than', 'equal'].map((name) => `{{ '${one}'|version_${name}('${other}') }}`)
    }),
  ...['>=0.9.0', '<0.9.0', '!=0.9.0', '==0.10.0', '0.10.0', '> 0.10.0', '<=0.10.0-rc'].map(
    (pattern) => `{{ '0.10.0'|version_match('${pattern}') }}`,
  ),
  ...['bump_major', 'bump_minor', 'bump_patch', 'strip_patch'].map((name) => `{{ '0.10.1-rc.1'|version_${name} }}`),
  ...[
    '$.store.book[*].title',
    'store.bicycle.color',
    '$..price',
    '$.store.book[0]',
    '$.nowhere',
    '$.store.book[1].title',
  ].map((query) => `{{ {'store': store}|jsonpath_query('${query}') }}`),
  `{{ 'xABCx'|regex_match('x[A-Z]') }} {{ 'xABCx'|regex_match('ABC') }} {{ 'xABCx'|regex_match('XABC', True) }}`,
  `{{ 'xABCx'|regex_search('ABC') }} {{ 'xABCx'|regex_search('abc') }} {{ 'xABCx'|regex_search('abc', True) }}`,
  `{{ 'a1b22'|regex_replace('([0-9]+)', '<\\\\1>') }} {{ 'aXbx'|regex_replace('x', '-', True) }}`,
  `{{ 'a1b22'|regex_substring('[0-9]+') }} {{ 'a1b22'|regex_substring('[0-9]+', 1) }}`,
  ...['0', '0.25', '0.0000015', '1', '59.2', '60', '3725', '123456', '31536000', '31536000.5'].map(
    (seconds) => `{{ ${seconds}|to_human_time_from_seconds }}`,
  ),
  '{{ text|json_escape }}',
  `{{ 'a'|use_none }}`,
  `{{ store|to_json_string }} {{ text|to_json_string }} {{ nothing|to_json_string }}`,
  `{{ store|to_json_string(indent=2) }} {{ {'b': 1, 'a': [1.5, True]}|to_json_string(sort_keys=True) }}`,
  `{{ store|to_complex }}`,
  `{{ '{"a": [1, null, "ä"]}'|from_json_string }}`,
  `{{ store|to_yaml_string }} {{ yaml|from_yaml_string }} {{ yaml|from_yaml_string|to_yaml_string(indent=4) }}`,
  `{{ '/a/b/c.txt'|basename }} {{ '/a/b/c.txt'|dirname }} {{ 1 in [1, 2] }} {{ 'a' is in ['a'] }}`,
]

it('each filter gives what that of the server gives', () => {
  const program =
    'import json, sys\nsys.path.insert(0, sys.argv[1])\nfrom st2common.util import jinja\n' +
    'given = json.load(sys.stdin)\nenvironment = jinja.get_jinja_environment()\nmade = {}\n' +
    'for template in given["templates"]:\n    try:\n' +
    '        made[template] = environment.from_string(template).render(given["variables"])\n' +
    '    except Exception as problem:\n        made[template] = repr(problem)\njson.dump(made, sys.stdout)\n'
  const { stdout, stderr } = spawnSync('/usr/bin/python3', ['-B', '-c', program, dirname(fileURLToPath(startScript))], {
    input: JSON.stringify({ templates, variables }),
    encoding: 'utf8',
  })
  expect(stderr).toBe('')
  expect(JSON.parse(stdout)).toEqual(
    Object.fromEntries(templates.map((template) => [template, render(template, variables, { isText: true })])),
  )
})

it('None goes through a template, and what cannot work says why', () => {
  const program =
    'import sys\nsys.path.insert(0, sys.argv[1])\nfrom st2common.util import jinja\n' +
    'given = {"a": "{{ b }}", "b": 2, "c": ["{{ b }}"], "d": "plain"}\n' +
    'print(sorted(jinja.render_values(given, {"b": 1}).items()))\n' +
    'print(jinja.render_values({"a": "{{ b|use_none }}"}, {"b": None}))\n' +
    'for template in ("{{ \'x\'|decrypt_kv }}", "{{ \'1.2\'|version_bump_minor }}", "{{ -1|to_human_time_from_seconds }}",' +
    ' "{{ missing }}", "{{ \'1.0.0\'|version_match(\'\') }}"):\n' +
    '    try:\n        jinja.render_values({"a": template}, {"b": 1})\n' +
    '    except Exception as problem:\n        print(problem)\n'
  const { stdout, stderr } = spawnSync('/usr/bin/python3', ['-B', '-c', program, dirname(fileURLToPath(startScript))], {
    encoding: 'utf8',
  })
  expect(stderr).toBe('')
  expect(stdout.trimEnd().split('\n')).toEqual([
    "[('a', '1'), ('b', 2), ('c', ['2']), ('d', 'plain')]",
    "{'a': '%*****__%NONE%__*****%'}",
    expect.stringMatching(/decrypt_kv is unavailable in svc. Use action_service.get_value\(name, decrypt=True\)/),
    '"1.2" is not a semantic version such as 1.2.3.',
    'to_human_time_from_seconds needs seconds from 0, not -1.',
    "'missing' is undefined",
    '"" is not a comparison such as >=1.2.3.',
  ])
})
