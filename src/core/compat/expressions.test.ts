import { expect, test } from 'vitest'
import { withOurExpressions } from './expressions.ts'

test.each([
  ['<% ctx().st2.user %>', '<% ctx().svc.user %>'],
  ['<% ctx(st2).user %>', '<% ctx(svc).user %>'],
  [`{{ ctx('st2').user }}`, `{{ ctx('svc').user }}`],
  [`<% ctx( "st2" ).user %>`, `<% ctx( "svc" ).user %>`],
  ['<% ctx().st2 %> and {{ ctx().st2 }}', '<% ctx().svc %> and {{ ctx().svc }}'],
  [`<% st2kv('system.a') + st2kv("b", decrypt => true) %>`, `<% svckv('system.a') + svckv("b", decrypt => true) %>`],
  ['{{ st2kv.system.plant }}', '{{ svckv.system.plant }}'],
  [`{{ st2kv['system'] }}{% if st2kv('x') %}y{% endif %}`, `{{ svckv['system'] }}{% if svckv('x') %}y{% endif %}`],
  // Nothing else has another name here.
  ['<% ctx().st2_host %>', '<% ctx().st2_host %>'],
  ['<% ctx().my.st2 %>', '<% ctx().my.st2 %>'],
  ['<% ctx(st2x) + ctx(xst2) %>', '<% ctx(st2x) + ctx(xst2) %>'],
  ['<% my_st2kv(1) %>', '<% my_st2kv(1) %>'],
  // Outside of expressions is text.
  ['# st2kv.system.a and ctx().st2', '# st2kv.system.a and ctx().st2'],
  ['st2kv( <% 1 %> ctx().st2', 'st2kv( <% 1 %> ctx().st2'],
  ['<% ctx().st2', '<% ctx().st2'],
  ['<% ctx().st2 {{ ctx().st2 }}', '<% ctx().st2 {{ ctx().svc }}'],
  ['', ''],
])('%j', (text, expected) => {
  const { text: ours, asWritten } = withOurExpressions(text)
  expect(ours).toBe(expected)
  expect(asWritten({ message: `Wrong: ${ours}`, list: [ours, 1, null] })).toEqual({
    message: `Wrong: ${text}`,
    list: [text, 1, null],
  })
  expect(withOurExpressions(expected).text).toBe(expected)
  expect(expected).toHaveLength(text.length)
})

test('a text of openings alone takes no noticeable work', () => {
  const text = `st2${'<%{{{%'.repeat(50_000)}`
  expect(withOurExpressions(text).text).toBe(text)
})
