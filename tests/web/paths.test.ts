/** The paths that the web client offers: what the server reads at them, as the key of a criterion and in a template. */
import { expect, it } from 'vitest'
import { compilePath } from '../../src/modules/rules/criteria/path.ts'
import { Budget, defaultLimits } from '../../src/lib/template/limits.ts'
import { render } from '../../src/lib/template/render.ts'
import { pathsOfPayload, templateOf } from '../../web/src/components/rules/paths.ts'

const names = [
  'plain',
  'with-dash',
  'with.dot',
  'with space',
  "it's",
  '"quoted"',
  'back\\slash',
  "\\'",
  '#tag',
  'a#b',
  'X-Custom',
  '0',
  '7up',
  '[0]',
  ']',
  '{{ x }}',
  '{% x %}',
  '$',
  '@',
  '*',
  '..',
  '_',
  'ünïcode',
  '😀',
  'two\nlines',
  'items',
  'keys',
  'get',
  'and',
]

it.each(names)('lead to the value of %j', (name) => {
  const payload = { body: { list: [{ [name]: 4711 }] } }
  const found = pathsOfPayload(payload).find(({ preview }) => preview === '4711')
  const path = found?.path ?? ''
  const roots = { data: { trigger: payload }, system: () => undefined }
  expect(compilePath(path).read(roots, new Budget(defaultLimits, 'the path'))).toBe(4711)
  expect(render(templateOf(path), { trigger: payload })).toBe(4711)
})
